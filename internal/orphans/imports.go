// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package orphans

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"
)

// ImportPath is where an operator serves what can be imported, below the address of its metrics.
const ImportPath = "/debug/ctrlkit/import"

// Imports are what can be imported from all systems of an operator.
type Imports struct {
	Systems []Import `json:"systems"`
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
			all = append(all, clean(s.Name+": "+s.Error))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("not all can be imported: %s", strings.Join(all, "; "))
}

// Write writes the manifests as YAML documents, each with a comment that names its system.
func (r *Imports) Write(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range r.Systems {
		for _, obj := range s.Objects {
			data, err := yaml.Marshal(obj)
			if err != nil {
				return err
			}
			if b.Len() > 0 {
				b.WriteString("---\n")
			}
			fmt.Fprintf(&b, "# from %s\n%s", clean(s.Name), data)
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
