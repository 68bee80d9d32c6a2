// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// ImportPath is where an operator serves what can be imported, below the address of its metrics.
const ImportPath = "/debug/ctrlkit/import"

// Imports are what can be imported from all systems of an operator. While they are read, the answer
// says every second how far it is: what has Systems is the last of it.
type Imports struct {
	Systems   []Import   `json:"systems,omitzero"`
	Adoptions []Adoption `json:"adoptions,omitempty"`
	Progress  *Progress  `json:"progress,omitempty"`
}

// Progress is how many resources were read so far.
type Progress struct {
	Done int `json:"done"`
	Of   int `json:"of"` // as far as it is known
}

// An Adoption is what the owner of a namespace may have to allow before its objects adopt resources.
type Adoption struct {
	Namespace string   `json:"namespace"`
	Patterns  []string `json:"patterns"` // of the ids, quoted as the annotation wants them
}

// adoptAnnotation has the patterns that the owner of a namespace allows, separated by commas.
const adoptAnnotation = "external.ctrlkit.dev/adopt"

// mostOfAnnotation is how long the value of the annotation may be in a command line.
const mostOfAnnotation = 100 << 10

// hint returns the comment that says how to allow it.
func (a *Adoption) hint() string {
	value := strings.Join(a.Patterns, ",")
	if len(value) > mostOfAnnotation {
		return fmt.Sprintf("# These are too many ids for the annotation %s of namespace %s: import them in parts, by NAME.\n", adoptAnnotation, printable.Line(a.Namespace))
	}
	return fmt.Sprintf("# To let objects of namespace %[1]s adopt them: kubectl annotate namespace %[1]s %[2]s='%[3]s'\n",
		printable.Line(a.Namespace), adoptAnnotation, strings.ReplaceAll(printable.Line(value), "'", `'\''`))
}

// An Import is what can be imported from one system.
type Import struct {
	Name    string           `json:"name"`
	Error   string           `json:"error,omitempty"` // of the system, or of some of its resources
	Objects []map[string]any `json:"objects,omitempty"`
}

// Found returns the number of objects.
func (r *Imports) Found() int {
	n := 0
	for _, s := range r.Systems {
		n += len(s.Objects)
	}
	return n
}

// Err returns an error that names the systems of which not all is shown, nil if there is none.
func (r *Imports) Err() error {
	var all []string
	for _, s := range r.Systems {
		if s.Error != "" {
			all = append(all, printable.Line(s.Name+": "+s.Error))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("not all can be imported: %s", strings.Join(all, "; "))
}

// Write writes the manifests as YAML documents, each with a comment that names its system. Comments on
// top say what has to be allowed before they are applied.
func (r *Imports) Write(w io.Writer) error {
	var b bytes.Buffer
	for _, a := range r.Adoptions {
		b.WriteString(a.hint())
	}
	first := true
	for _, s := range r.Systems {
		for _, obj := range s.Objects {
			data, err := printable.YAML(obj)
			if err != nil {
				return err
			}
			if !first {
				b.WriteString("---\n")
			}
			first = false
			fmt.Fprintf(&b, "# from %s\n%s", printable.Line(s.Name), data)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
