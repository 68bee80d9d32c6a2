// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package orphans is what an operator says about the resources of its external systems that have no
// object, and about its objects that have no resource: package external serves it, and the command
// prints it. It is a package of its own so that the command does not link the engine of package
// external.
package orphans

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Path is where an operator serves its report, below the address of its metrics.
const Path = "/debug/ctrlkit/orphans"

// A Report is the result of all audits of an operator.
type Report struct {
	Systems []System `json:"systems"`
}

// A System is the result of one audit.
type System struct {
	Name    string     `json:"name"`
	Error   string     `json:"error,omitempty"` // of an audit that failed
	Orphans []Resource `json:"orphans,omitempty"`
	Missing []Object   `json:"missing,omitempty"`
}

// A Resource has no object in this cluster, as far as the operator knows.
type Resource struct {
	Scope string `json:"scope,omitempty"` // within the system, such as an account
	ID    string `json:"id"`
	Owner string `json:"owner"` // the UID of the object
}

// An Object has no resource.
type Object struct {
	journal.Object
	ID string `json:"id"` // of the resource
}

// Found returns how many resources and objects are without the other.
func (r *Report) Found() int {
	n := 0
	for _, s := range r.Systems {
		n += len(s.Orphans) + len(s.Missing)
	}
	return n
}

// Err returns an error that names the systems whose audit failed, nil if none has.
func (r *Report) Err() error {
	var all []string
	for _, s := range r.Systems {
		if s.Error != "" {
			all = append(all, printable.Line(s.Name+": "+s.Error))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("not audited: %s", strings.Join(all, "; "))
}

// Sort puts a report into an order that does not depend on the systems.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Systems, func(a, b System) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range r.Systems {
		slices.SortStableFunc(s.Orphans, func(a, b Resource) int {
			return cmp.Or(strings.Compare(a.Scope, b.Scope), strings.Compare(a.ID, b.ID))
		})
		slices.SortStableFunc(s.Missing, func(a, b Object) int {
			return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
}

// Write writes a report as a table, or one line if nothing was found.
func (r *Report) Write(w io.Writer) error {
	if r.Found() == 0 {
		text := "nothing is orphaned in 1 system"
		if n := len(r.Systems); n != 1 {
			text = fmt.Sprintf("nothing is orphaned in %d systems", n)
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(t, "SYSTEM\tRESOURCE\tOBJECT\tPROBLEM")
	for _, s := range r.Systems {
		for _, o := range s.Orphans {
			id := o.ID
			if o.Scope != "" {
				id += " in " + o.Scope
			}
			fmt.Fprintf(t, "%s\t%s\tuid %s\tno object of this operator in this cluster has it\n", printable.Line(s.Name), printable.Line(id), printable.Line(o.Owner))
		}
		for _, m := range s.Missing {
			fmt.Fprintf(t, "%s\t%s\t%s\tthe resource is gone\n", printable.Line(s.Name), printable.Line(m.ID), printable.Line(m.String()))
		}
	}
	return t.Flush()
}
