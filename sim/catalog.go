// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// catalog is what a run without faults comes by: every place where a fault can strike.
type catalog struct {
	writes  []fault.Write
	reads   []string
	calls   []Call
	events  []eventPlace
	detours int

	deletions int // by users
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
	place := fault.Write{
		Verb: r.Verb, Subresource: r.Subresource,
		Named: (r.Verb == "create" || isApply(r)) && !strings.HasSuffix(target, "*"),
	}
	if current, err := w.lookUp(target); err == nil {
		place.Exists = true
		place.AddsFinalizer = r.Subresource == "" && len(current.obj.GetFinalizers()) == 0 && hasFinalizers(r.Body) && r.Verb != "create"
	}
	for _, of := range sortedKeys(w.written) {
		current, err := w.lookUp(of)
		if err != nil {
			continue
		}
		if !w.prerequisite(of) {
			if current.obj.GetDeletionTimestamp() == nil {
				place.Users = append(place.Users, of)
			}
			if len(statusOf(current.content)) > 0 {
				place.Statuses = append(place.Statuses, of)
			}
			if w.annotatedByOperator(of, current) {
				place.Annotated = append(place.Annotated, of)
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
func (r *reference) singles() []fault.Fault {
	var list []fault.Fault
	add := func(p fault.Place) {
		p.Withholdable, p.Watched, p.UsesClock = r.withholdable, r.kinds, r.usesClock
		list = append(list, p.Faults()...)
	}
	add(fault.Place{Point: fault.AtWrite})
	for n := range r.checkpoints {
		add(fault.Place{Point: fault.WhenIdle, At: n + 1})
	}
	for i := range r.catalog.writes {
		add(fault.Place{Point: fault.AtWrite, At: i + 1, Write: &r.catalog.writes[i]})
	}
	for i := range r.catalog.reads {
		add(fault.Place{Point: fault.AtRead, At: i + 1})
	}
	for i, call := range r.catalog.calls {
		add(fault.Place{Point: fault.AtCall, At: i + 1, Mutates: call.Mutates})
	}
	for _, place := range r.catalog.events {
		add(fault.Place{Point: fault.AtEvent, At: place.n, Of: place.kind})
	}
	for n := range r.catalog.deletions {
		add(fault.Place{Point: fault.AtDeletion, At: n + 1})
	}
	for n := range r.catalog.detours {
		add(fault.Place{Point: fault.AtDetour, At: n + 1})
	}
	return list
}
