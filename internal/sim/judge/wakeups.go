// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
)

// Unwatched is what the last reconcile of an object has read although nothing watches its kind, and
// nothing wakes the object by itself.
type Unwatched struct {
	Controller string
	Object     string // that was reconciled: "default/x"
	Step       string // of an engine, which has found this itself; empty for other reconcilers
	Kind       string // that was read: "secrets"
	Read       string // one of them: "default/y"; a list has a namespace only, or nothing
	Site       string // the line of code; empty if it is not known
}

// noLostWakeUp demands that what a reconcile has read can wake the object when it changes: by a watch
// of the kind, or by a time. What a kind is read for is not known, so that the workload may declare
// one. Of an object that is gone nothing is demanded: its last reconcile may be that of its deletion.
type noLostWakeUp struct{}

func (noLostWakeUp) WhenIdle(l *ledger, i Idle, v violate) {
	said := map[[2]string]bool{} // each kind once for each controller
	for _, u := range i.Unwatched {
		if key := [2]string{u.Controller, u.Kind}; l.rules.Unwatched[u.Kind] == "" && !said[key] && l.isThereAs(u.Object) {
			said[key] = true
			v(u.text(cmp.Or(l.declare, "sim.Unwatched")))
		}
	}
}

func (u *Unwatched) text(declaredBy string) string {
	who, what, where := "controller "+u.Controller, u.Kind, ""
	if u.Step != "" {
		who = fmt.Sprintf("step %s of controller %s", u.Step, u.Controller)
	}
	if u.Read != "" {
		what += " " + u.Read
	}
	if u.Site != "" {
		where = " at " + u.Site
	}
	return fmt.Sprintf("%s has read %s%s for %s, without asking for a time, and nothing watches %s: a change wakes nothing; "+
		"if that is meant, say so with %s", who, what, where, u.Object, u.Kind, declaredBy)
}

// isThereAs reports whether there is an object of a name, as controllers log it.
func (l *ledger) isThereAs(name string) bool {
	for _, obj := range l.live {
		if obj.GetNamespace()+"/"+obj.GetName() == name {
			return true
		}
	}
	return false
}
