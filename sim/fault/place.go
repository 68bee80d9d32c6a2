// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fault

import "time"

// A Point is a kind of place at which faults strike.
type Point int

// The points of a run.
const (
	AtWrite Point = iota + 1
	AtRead
	AtCall
	AtEvent
	AtDetour
	AtDeletion // by a user
	WhenIdle   // at a checkpoint of the script
)

// A Place is one place of a run at which faults can strike, with everything that decides which ones
// can. A simulation records its places in a run without faults.
type Place struct {
	Point Point
	At    int    // which of its point; write 0 is before the operator starts
	Of    string // AtEvent: the kind of the object, by which events are counted

	Write   *Write // AtWrite, but for write 0
	Mutates bool   // AtCall: the call has an effect outside

	Withholdable []string // Secrets and ConfigMaps that were there before the operator started
	Watched      []string // kinds that the operator watches
	UsesClock    bool     // the operator reads the clock of its process
}

// Write is what decides which faults can strike at a write.
type Write struct {
	Verb          string
	Subresource   string
	Named         bool // a creation whose name the operator has chosen
	Exists        bool // the object is there before the write
	AddsFinalizer bool // the object has no finalizer before the write, and has one after it

	// The objects of users that are there at the write, as plans name them.
	Users     []string // that are not being deleted
	Statuses  []string // that have a status
	Annotated []string // with annotations or labels that their users have not written
}

// target says which objects or kinds a fault can be about.
type target int

const (
	none target = iota
	eventKind
	watchedKinds
	userObjects
	objectsWithStatus
	annotatedObjects
	prerequisites
)

func (p *Place) targets(t target) []string {
	w := p.Write
	if w == nil {
		w = &Write{}
	}
	switch t {
	case eventKind:
		return []string{p.Of}
	case watchedKinds:
		return p.Watched
	case userObjects:
		return w.Users
	case objectsWithStatus:
		return w.Statuses
	case annotatedObjects:
		return w.Annotated
	case prerequisites:
		return p.Withholdable
	}
	return []string{""}
}

func (p *Place) exists() bool { return p.Write.Exists }

func (p *Place) storesObject() bool {
	return p.Write.Subresource == "" && p.Write.Verb != "delete" && p.Write.Verb != "deletecollection"
}

func (p *Place) takesName() bool { return p.Write.Named && !p.Write.Exists }

func (p *Place) changesObject() bool {
	w := p.Write
	return w.Exists && w.Subresource == "" && (w.Verb == "update" || w.Verb == "patch") && !w.AddsFinalizer
}

func (p *Place) addsFinalizer() bool { return p.Write.AddsFinalizer }
func (p *Place) usesClock() bool     { return p.UsesClock }
func (p *Place) mutates() bool       { return p.Mutates }

// Faults returns every fault that can strike at the place, in the order of the table. Faults about
// the same object stand together.
func (p *Place) Faults() []Fault {
	var list []Fault
	for i := 0; i < len(table); {
		end := i + 1
		for end < len(table) && table[end].of == table[i].of && table[i].of != none {
			end++
		}
		for _, of := range p.targets(table[i].of) {
			for _, e := range table[i:end] {
				if e.strikesAt(p) {
					list = append(list, e.variants(p.At, of)...)
				}
			}
		}
		i = end
	}
	return list
}

func (e *entry) strikesAt(p *Place) bool {
	if e.point != p.Point {
		return false
	}
	if p.Point == AtWrite && p.At == 0 {
		return e.atStart
	}
	return e.when == nil || e.when(p)
}

// variants returns the fault once for each combination of its parameters.
func (e *entry) variants(at int, of string) []Fault {
	var list []Fault
	for _, by := range orZero(e.by) {
		for _, how := range orZero(e.answers) {
			for _, d := range orZero(e.times) {
				list = append(list, Fault{Kind: e.kind, At: at, Of: of, By: by, How: how, For: d})
			}
		}
	}
	return list
}

func orZero[T int | string | time.Duration](values []T) []T {
	if len(values) == 0 {
		return make([]T, 1)
	}
	return values
}
