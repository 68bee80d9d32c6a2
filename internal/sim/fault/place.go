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
	Site  string // what the operator does or is shown there, for the order of plans; may be empty

	Repeated bool // AtRead: it was read before, and nothing has changed since

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
	Conditional   bool // a resource version or a precondition makes a conflict possible
	Owned         bool // a creation of an object that has an owner
	Child         bool // the operator has created the object, and can create it again

	// Seen is how many events of each kind the operator has received before the write.
	Seen map[string]int

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

func (p *Place) takesName() bool    { return p.Write.Named && !p.Write.Exists }
func (p *Place) createsOwned() bool { return p.Write.Owned && !p.Write.Exists }

// writesChild reports whether the write is about a child that another client can delete just
// before.
func (p *Place) writesChild() bool {
	return p.Write.Child && p.Write.Exists && p.Write.Verb != "create" && p.Write.Verb != "deletecollection"
}

// refuses reports whether a real server can refuse the write with an answer although it can do what
// the write asks for:
//
//   - 409 says that the object has changed since the client has read it, so the write must say which
//     state it is about. A name that is taken is not a refusal but [OccupyName].
//   - 422 says that the object is invalid, so there must be one.
//   - Admission webhooks are rarely called for subresources.
//
// 404 is not among the answers: an object that exists is found. [DeleteBeforeWrite] removes it.
func (p *Place) refuses(how string) bool {
	switch how {
	case "409":
		return p.Write.Conditional
	case "422":
		return p.Write.Verb != "delete" && p.Write.Verb != "deletecollection"
	case "webhook":
		return p.Write.Subresource == ""
	}
	return true
}

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
					list = append(list, e.variants(p, of)...)
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

// variants returns the fault once for each combination of its parameters that is possible.
func (e *entry) variants(p *Place, of string) []Fault {
	var list []Fault
	for _, by := range orZero(e.by) {
		for _, how := range orZero(e.answers) {
			if e.can != nil && !e.can(p, how) {
				continue
			}
			for _, d := range orZero(e.times) {
				list = append(list, Fault{Kind: e.kind, At: p.At, Of: of, By: by, How: how, For: d})
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
