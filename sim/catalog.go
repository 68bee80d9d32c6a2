// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

// catalog is what a run without faults comes by: every place where a fault can strike.
type catalog struct {
	writes  []writePlace
	reads   []string
	calls   []Call
	events  []eventPlace
	detours int

	deletions int // by users
}

type writePlace struct {
	n            int
	text         string
	verb         string
	subresource  string
	named        bool // a creation whose name the operator has chosen
	addsFinality bool // the object had no finalizer before, and has one after
	exists       bool // the object is there before
	users        []string
	annotated    []string
	statuses     []string
}

type eventPlace struct {
	kind string
	n    int
	text string
}

func (c *catalog) noteWrite(w *World, n int, r *apiserver.Request) {
	if w.reference != nil {
		return
	}
	target := w.targetOf(r)
	place := writePlace{
		n: n, text: describe(r), verb: r.Verb, subresource: r.Subresource,
		named: (r.Verb == "create" || isApply(r)) && !strings.HasSuffix(target, "*"),
	}
	if current, err := w.lookUp(target); err == nil {
		place.exists = true
		place.addsFinality = r.Subresource == "" && len(current.obj.GetFinalizers()) == 0 && hasFinalizers(r.Body) && r.Verb != "create"
	}
	for _, of := range sortedKeys(w.written) {
		current, err := w.lookUp(of)
		if err != nil {
			continue
		}
		if !w.prerequisite(of) {
			if current.obj.GetDeletionTimestamp() == nil {
				place.users = append(place.users, of)
			}
			if len(statusOf(current.content)) > 0 {
				place.statuses = append(place.statuses, of)
			}
			if w.annotatedByOperator(of, current) {
				place.annotated = append(place.annotated, of)
			}
		}
	}
	c.writes = append(c.writes, place)
}

func isApply(r *apiserver.Request) bool {
	return r.Verb == "patch" && strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// hasFinalizers reports whether the body of a write sets finalizers, as an object, a merge patch or a JSON patch.
func hasFinalizers(body []byte) bool {
	var object struct {
		Metadata struct{ Finalizers []string }
	}
	if json.Unmarshal(body, &object) == nil {
		return len(object.Metadata.Finalizers) > 0
	}
	return strings.Contains(string(body), "/metadata/finalizers")
}

// annotatedByOperator reports whether an object has annotations or labels that its user has not written.
func (w *World) annotatedByOperator(of string, current object) bool {
	written, _ := w.written[of]["metadata"].(map[string]any)
	for field, has := range map[string]map[string]string{"annotations": current.obj.GetAnnotations(), "labels": current.obj.GetLabels()} {
		own, _ := written[field].(map[string]any)
		for key := range has {
			if _, ok := own[key]; !ok {
				return true
			}
		}
	}
	return false
}

// prerequisite reports whether an object is one of Workload.Objects.
func (w *World) prerequisite(of string) bool { return slices.Contains(w.prerequisites, of) }

func (c *catalog) noteRead(n int, r *apiserver.Request) {
	if n > len(c.reads) {
		c.reads = append(c.reads, describe(r))
	}
}

func (c *catalog) noteCall(n int, call *Call) {
	if n > len(c.calls) {
		c.calls = append(c.calls, *call)
	}
}

func (c *catalog) noteEvent(kind string, n int, event apiserver.Event) {
	c.events = append(c.events, eventPlace{kind, n, event.Type + " " + objectName(event.Resource, event.Namespace, event.Name)})
}

// singles lists every single fault that can strike in a run, in a fixed order.
func (r *reference) singles() []Fault {
	var list []Fault
	for _, of := range r.withholdable {
		list = append(list, Fault{Kind: Withhold, Of: of})
	}
	for n := range r.checkpoints {
		list = append(list, Fault{Kind: ProveRest, At: n + 1})
	}
	for _, place := range r.catalog.writes {
		list = append(list, r.atWrite(place)...)
	}
	for i := range r.catalog.reads {
		list = append(list, atEachRead(i+1)...)
	}
	for i, call := range r.catalog.calls {
		list = append(list, atEachCall(i+1, call)...)
	}
	for _, place := range r.catalog.events {
		list = append(list, atEachEvent(place)...)
	}
	for n := 1; n <= r.catalog.deletions; n++ {
		for _, of := range r.withholdable {
			list = append(list, Fault{Kind: WithholdAtDeletion, At: n, Of: of})
		}
	}
	for n := 1; n <= r.catalog.detours; n++ {
		list = append(list, Fault{Kind: TakeDetour, At: n})
	}
	return list
}

func (r *reference) atWrite(place writePlace) []Fault {
	n := place.n
	list := []Fault{{Kind: CrashBeforeWrite, At: n}, {Kind: CrashAfterWrite, At: n}}
	for _, how := range answersOf[LoseWriteAnswer] {
		list = append(list, Fault{Kind: LoseWriteAnswer, At: n, How: how})
	}
	for _, how := range answersOf[RefuseWrite] {
		list = append(list, Fault{Kind: RefuseWrite, At: n, How: how})
	}
	for _, kind := range []FaultKind{LandLate, SecondLeader, PanicAtWrite, StopAtWrite} {
		list = append(list, Fault{Kind: kind, At: n})
	}
	list = append(list, Fault{Kind: PauseBeforeWrite, At: n, For: 2 * time.Minute})
	if place.exists {
		list = append(list, Fault{Kind: TouchBeforeWrite, At: n})
	}
	if place.subresource == "" && place.verb != "delete" && place.verb != "deletecollection" {
		list = append(list, Fault{Kind: MutateWrite, At: n})
	}
	if place.named && !place.exists {
		list = append(list, Fault{Kind: OccupyName, At: n})
	}
	if place.exists && place.subresource == "" && (place.verb == "update" || place.verb == "patch") && !place.addsFinality {
		list = append(list, Fault{Kind: Fight, At: n})
	}
	if place.addsFinality {
		list = append(list, Fault{Kind: Vanish, At: n})
	}
	for _, kind := range r.kinds {
		for _, by := range []int{1, 4} {
			list = append(list, Fault{Kind: RestartInPast, At: n, Of: kind, By: by})
		}
	}
	if r.usesClock {
		list = append(list, Fault{Kind: JumpClock, At: n, For: time.Hour}, Fault{Kind: JumpClock, At: n, For: -time.Hour})
	}
	for _, of := range place.users {
		list = append(list, Fault{Kind: Recreate, At: n, Of: of}, Fault{Kind: DeleteAndCreate, At: n, Of: of})
	}
	for _, of := range place.statuses {
		list = append(list, Fault{Kind: WipeStatus, At: n, Of: of})
	}
	for _, of := range place.annotated {
		list = append(list, Fault{Kind: StripAnnotations, At: n, Of: of})
	}
	for _, of := range r.withholdable {
		list = append(list, Fault{Kind: Withhold, At: n, Of: of})
	}
	return list
}

func atEachRead(n int) []Fault {
	list := []Fault{{Kind: PanicAtRead, At: n}}
	for _, how := range answersOf[RefuseRead] {
		list = append(list, Fault{Kind: RefuseRead, At: n, How: how})
	}
	return list
}

func atEachCall(n int, call Call) []Fault {
	list := []Fault{
		{Kind: CrashBeforeCall, At: n}, {Kind: CrashAfterCall, At: n}, {Kind: LoseCallAnswer, At: n}, {Kind: FailCall, At: n},
		{Kind: ThrottleCall, At: n}, {Kind: SlowCall, At: n, For: 90 * time.Second}, {Kind: HangCall, At: n}, {Kind: Outage, At: n, For: 10 * time.Minute},
		{Kind: OutageUntilRest, At: n}, {Kind: Drift, At: n}, {Kind: PanicAtCall, At: n},
	}
	if call.Mutates {
		list = append(list, Fault{Kind: CrashInsideCall, At: n})
	}
	return list
}

func atEachEvent(place eventPlace) []Fault {
	list := []Fault{}
	for _, by := range []int{1, 3} {
		list = append(list, Fault{Kind: Lag, At: place.n, Of: place.kind, By: by})
	}
	for _, kind := range []FaultKind{MissEvent, DuplicateEvent, DelayEvent, CloseWatch, ExpireWatch} {
		list = append(list, Fault{Kind: kind, At: place.n, Of: place.kind})
	}
	return list
}
