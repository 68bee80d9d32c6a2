// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"net/http"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
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
	whenIdle(a.time, a.trace, "the deleted object is created again", func() {
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

// Changed creates an object again whose name is free now, if one of the actors wants it.
func (a *Actors) Changed(c apiserver.Change) {
	of := cluster.ObjectName(c.Resource, c.Namespace, c.Name)
	if create, ok := a.recreations[of]; ok && c.Type == "DELETED" {
		delete(a.recreations, of)
		a.time.After(0, create)
	}
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
	whenIdle(a.time, a.trace, "the object that was lost is created again", func() { a.create(target.Collection, again) })
}

// Withhold takes an object away, and brings it back when everything is idle.
func (a *Actors) Withhold(of string) {
	target, err := a.cluster.LookUp(of)
	if err != nil {
		return
	}
	again := a.asWritten(of, target)
	a.ask(http.MethodDelete, target.Path, "application/json", map[string]any{})
	whenIdle(a.time, a.trace, "the object that was withheld is there again", func() {
		a.notes.Stuck("the object "+of+" is missing", a.Blocked())
		a.create(target.Collection, again)
		a.time.SlowDown(a.time.Quiet())
	})
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
