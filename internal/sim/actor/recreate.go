// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"net/http"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// Recreate deletes an object, and creates it anew with another UID as soon as its name is free.
func (a *Actors) Recreate(of string) {
	target, create, ok := a.deletable(of)
	if !ok {
		return
	}
	a.recreations[of] = create
	a.delete(target.Path)
}

// DeleteAndCreate deletes an object, and creates it anew with another UID when everything is idle.
func (a *Actors) DeleteAndCreate(of string) {
	target, create, ok := a.deletable(of)
	if !ok {
		return
	}
	a.backWhenIdle(of, "the deleted object is created again", nil, func() {
		if _, err := a.cluster.LookUp(of); err == nil {
			// Its cleanup waits for something else that is healed now.
			a.recreations[of] = create
			a.time.SlowDown(a.time.Quiet())
			return
		}
		create()
	})
	a.delete(target.Path)
}

// deletable returns an object that is not being deleted yet, and what creates it again.
func (a *Actors) deletable(of string) (target cluster.Object, create func(), ok bool) {
	target, err := a.cluster.LookUp(of)
	if err != nil || target.GetDeletionTimestamp() != nil {
		return target, nil, false
	}
	again := a.asWritten(of, target)
	a.notes.Disturbed(target.GetUID())
	return target, func() { a.create(target.Collection, again) }, true
}

// Vanish takes away the object of a request for good, as a deletion does that came at the same
// instant as the finalizer. It is created again when everything is idle.
func (a *Actors) Vanish(r *apiserver.Request) {
	of := cluster.TargetOf(r)
	target, err := a.cluster.LookUp(of)
	if err != nil {
		return
	}
	again := a.asWritten(of, target)
	a.notes.Disturbed(target.GetUID())
	a.cluster.Server.Remove("user", r.Resource, r.Namespace, r.Name)
	a.trace.Add("user", "write", "delete "+of+", at the same instant as the finalizer")
	a.backWhenIdle(of, "the object that was lost is created again", nil, func() { a.create(target.Collection, again) })
}

// Withhold takes an object away, and brings it back when everything is idle.
func (a *Actors) Withhold(of string) {
	target, err := a.cluster.LookUp(of)
	if err != nil {
		return
	}
	again := a.asWritten(of, target)
	a.ask(http.MethodDelete, target.Path, "application/json", map[string]any{})
	report := func() { a.notes.Stuck("the object "+of+" is missing", a.Blocked()) }
	a.backWhenIdle(of, "the object that was withheld is there again", report, func() {
		a.create(target.Collection, again)
		a.time.SlowDown(a.time.Quiet())
	})
}

// absence is an object that an actor has taken away for a time.
type absence struct {
	text string // how the trace records its return
	back func()
}

// backWhenIdle brings an object back when everything is idle, unless its user has needed or deleted
// it before. idle is called just before, if everything has become idle without it. It may be nil.
func (a *Actors) backWhenIdle(of, text string, idle, back func()) {
	gone := &absence{text, back}
	a.absent[of] = gone
	a.time.WhenIdle(func() {
		if a.absent[of] != gone {
			return
		}
		if idle != nil {
			idle()
		}
		a.BringBack(of)
	})
}

// BringBack brings back an object that an actor has taken away, because its user is about to read or
// change it: the user knows nothing of faults, and would have created it by then.
func (a *Actors) BringBack(of string) {
	if gone, ok := a.absent[of]; ok {
		delete(a.absent, of)
		a.trace.Add("sim", "heal", gone.text)
		gone.back()
	}
}

// KeepAway makes an object stay away that an actor has taken away, because its user is about to
// delete it.
func (a *Actors) KeepAway(of string) {
	delete(a.absent, of)
	delete(a.recreations, of)
}

// asWritten returns an object as a user would create it again: with nothing that others have put
// there.
func (a *Actors) asWritten(of string, target cluster.Object) map[string]any {
	metadata := map[string]any{"name": target.GetName()}
	if ns := target.GetNamespace(); ns != "" {
		metadata["namespace"] = ns
	}
	again := map[string]any{"metadata": metadata}
	for k, v := range target.Object { // users may have changed it since they created it
		if k != "status" && k != "metadata" {
			again[k] = v
		}
	}
	written, ok := a.cluster.WrittenMetadata(of)
	if !ok {
		written, _ = target.Object["metadata"].(map[string]any)
	}
	for _, k := range []string{"labels", "annotations", "ownerReferences"} {
		if v, ok := written[k]; ok {
			metadata[k] = v
		}
	}
	return again
}
