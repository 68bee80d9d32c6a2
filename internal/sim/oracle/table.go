// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A Class says how bad it is that an oracle does not hold. Smaller classes are worse: reports begin
// with them.
type Class int

// The classes, the worst first.
const (
	ClassLost       Class = iota + 1 // something outside is left for ever, or something of a user is gone
	ClassDuplicate                   // something is done twice
	ClassForeign                     // what belongs to others is changed
	ClassStuck                       // the operator or an object makes no progress any more
	ClassLoop                        // the operator never becomes idle
	ClassDifference                  // the cluster ends in another state
	ClassStatus                      // only what the status says is wrong
	ClassCosmetic                    // users hardly notice
)

// String returns the class as a heading has it.
func (c Class) String() string {
	names := []string{"leak or loss", "duplicate", "foreign object", "stuck", "hot loop", "different end", "wrong status", "cosmetic"}
	if c < ClassLost || int(c) > len(names) {
		return "unknown"
	}
	return names[c-1]
}

// UnmarshalText reads the text of [Class.String].
func (c *Class) UnmarshalText(text []byte) error {
	for *c = ClassLost; *c <= ClassCosmetic; *c++ {
		if c.String() == string(text) {
			return nil
		}
	}
	return fmt.Errorf("there is no class %q of oracles", text)
}

// An Entry is what a report says about an oracle.
type Entry struct {
	Name    Name   `json:"name"`
	Class   Class  `json:"class"`
	Meaning string `json:"meaning"` // what it means for users that the oracle does not hold, in a sentence
	Remedy  string `json:"remedy"`  // what to do about it; empty where that depends on the operator

	// StaleRemedy replaces Remedy when a fault of the plan made a cache stale.
	StaleRemedy string `json:"stale"`
}

//go:embed table.yaml
var tableText []byte

// table has one row per oracle.
var table = func() (rows []Entry) {
	if err := yaml.UnmarshalStrict(tableText, &rows); err != nil {
		panic(err) // it is part of the program
	}
	return rows
}()

// Names returns all oracles, those first that are the worst when they do not hold.
func Names() []Name {
	list := make([]Name, len(table))
	for i, e := range table {
		list[i] = e.Name
	}
	return list
}

// About returns what a report says about an oracle.
func About(name Name) (Entry, bool) {
	i := slices.IndexFunc(table, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{Name: name, Class: ClassDifference}, false
	}
	return table[i], true
}

// Rank orders the oracles of a class: reports begin with smaller ones.
func (n Name) Rank() int {
	if i := slices.IndexFunc(table, func(e Entry) bool { return e.Name == n }); i >= 0 {
		return i
	}
	return len(table)
}

// Class returns how bad the violation is. That is the class of its oracle, unless the differences
// between the two ends show more: a missing object is worse than another field of a status.
func (v Violation) Class() Class {
	entry, _ := About(v.Oracle)
	if len(v.Differences) == 0 {
		return entry.Class
	}
	return v.Worst().Class()
}

// Worst returns the difference that is the worst one: what is missing, then what is too much. What
// the controllers of Kubernetes keep comes after what the operator keeps.
func (v Violation) Worst() Difference {
	return slices.MinFunc(v.Differences, func(a, b Difference) int {
		return cmp.Or(a.rank()-b.rank(), int(a.Class())-int(b.Class()))
	})
}

// keptByControllers are kinds whose objects controllers of Kubernetes make for others.
var keptByControllers = []string{
	"controllerrevisions.apps", "endpoints", "endpointslices.discovery.k8s.io", "nodes", "persistentvolumes", "pods", "replicasets.apps",
}

func (d Difference) rank() int {
	kind, _, _ := strings.Cut(d.Thing, " ")
	rank := 4
	switch {
	case d.Path == "" && d.Got == "":
		rank = 0
	case d.Path == "":
		rank = 2
	}
	if slices.Contains(keptByControllers, kind) {
		rank++
	}
	return rank
}

// Class returns how bad the difference is.
func (d Difference) Class() Class {
	external := strings.HasPrefix(d.Thing, "external ")
	switch {
	case external && d.Path == "":
		return ClassLost
	case d.Path == "" && d.Got == "":
		return ClassStuck
	case d.Path == "":
		return ClassDuplicate
	case strings.HasPrefix(d.Path, ".status"):
		return ClassStatus
	}
	return ClassDifference
}
