// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// finalizerFirst demands that an object has a finalizer before something is done outside for it:
// without one, the object could go at any time, and leave an orphan outside.
type finalizerFirst struct{}

func (finalizerFirst) OnCall(l *ledger, c external.Call, v violate) {
	if c.Owner == "" || c.Verb == "delete" || l.disturbed[c.Owner] {
		return
	}
	obj, live := l.live[c.Owner]
	switch {
	case !live && l.uids[c.Owner] != "":
		v(fmt.Sprintf("%s: %s is gone already", c, l.uids[c.Owner]))
	case live && len(obj.GetFinalizers()) == 0:
		v(fmt.Sprintf("%s: %s has no finalizer, so its deletion would not wait for the cleanup", c, l.uids[c.Owner]))
	}
}

// oneExternal demands that a retry finds what was created before.
type oneExternal struct{}

func (oneExternal) AfterCall(l *ledger, c external.Call, v violate) {
	system, ok := l.systems[c.System]
	if !ok || c.Owner == "" || l.reference == nil || l.addsWork {
		return
	}
	want := max(1, l.reference.externals[c.System+" "+l.uids[c.Owner]])
	if got := system.Created(c.Owner); got > want {
		v(fmt.Sprintf("%d resources of %s were created for %s, without the fault %d", got, c.System, l.uids[c.Owner], want))
	}
}

// noLeak demands that nothing is left outside of an object that is gone.
type noLeak struct{}

func (noLeak) OnChange(l *ledger, c *change, v violate) {
	if c.Type != "DELETED" {
		return
	}
	if l.disturbed[c.UID] && l.vanishes {
		return // the cleanup can only come afterwards: the end shows whether it does
	}
	for _, name := range slices.Sorted(maps.Keys(l.systems)) {
		for _, r := range l.systems[name].Inventory() {
			if r.Owner == c.UID {
				v(fmt.Sprintf("%s is gone, its external resource %s of %s is not", c.canonical, r.ID, name))
			}
		}
	}
}
