// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// noOrphans demands that nothing of an object is left in the cluster once it is gone: what the
// operator has created for it is deleted by the garbage collector or by the operator.
//
// An object that has no owner reference does not say for whom it was created. It is an orphan when
// all objects of users are gone that were there at its creation, and that the operator may have
// worked for. So these are not accused:
//
//   - what serves several objects, while one of them is there, or another one of that name;
//   - what was created before the first object of users was;
//   - what players, other clients and users have created;
//   - kinds that the workload keeps.
type noOrphans struct {
	served map[types.UID]string   // objects of users that the operator may work for: their names
	made   map[types.UID][]string // objects that the operator has created: the names of those they may be for
}

func newNoOrphans() noOrphans {
	return noOrphans{served: map[types.UID]string{}, made: map[types.UID][]string{}}
}

func (o noOrphans) OnChange(l *ledger, c *change, _ violate) {
	switch {
	case c.Type == "DELETED":
		delete(o.served, c.UID)
		delete(o.made, c.UID)
	case c.Type == "ADDED" && c.byOperator:
		if l.rules.Keeps[c.Resource.GroupResource().String()] == "" {
			o.made[c.UID] = slices.Sorted(maps.Values(o.served))
		}
	case c.Type == "ADDED" && c.isUsers() && l.prepared, c.byOperator && o.made[c.UID] == nil:
		// What was there before the operator started counts once the operator writes to it.
		o.served[c.UID] = c.canonical
	}
}

func (o noOrphans) WhenIdle(l *ledger, i Idle, v violate) {
	if i.Checkpoint == 0 || l.vanishes || l.aborted {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(o.made)) {
		obj, live := l.live[uid]
		if !live || obj.GetDeletionTimestamp() != nil || len(o.made[uid]) == 0 || slices.ContainsFunc(obj.GetOwnerReferences(), isLive(l)) {
			continue
		}
		if !slices.ContainsFunc(o.made[uid], l.isThere) {
			// Reports tell findings apart by their first line: what else was there makes no other
			// one.
			v(fmt.Sprintf("%s is still there, although what the operator has created it for is gone; if that is meant, say so with %s\nit was created for %s",
				l.uids[uid], cmp.Or(l.declare, "sim.Keeps"), strings.Join(slices.Compact(o.made[uid]), " or ")))
		}
	}
}

// isThere reports whether there is an object of a name.
func (l *ledger) isThere(canonical string) bool {
	for uid := range l.live {
		if l.uids[uid] == canonical {
			return true
		}
	}
	return false
}

// noLateFinalizer demands that the operator does not try to add a finalizer to an object that is
// being deleted. The server refuses that, so that the deletion makes no progress if the operator
// depends on it. A single try from a stale cache is right.
type noLateFinalizer struct {
	tries map[types.UID]int
}

func (o noLateFinalizer) AfterWrite(l *ledger, r *apiserver.Request, answer *apiserver.Response, v violate) {
	if answer.Code != http.StatusUnprocessableEntity || !strings.Contains(string(answer.Body), "no new finalizers can be added if the object is being deleted") {
		return
	}
	for uid, obj := range l.live {
		deleted := obj.GetDeletionTimestamp()
		if deleted == nil || obj.GetName() != r.Name || obj.GetNamespace() != r.Namespace || obj.resource.GroupResource() != r.Resource.GroupResource() {
			continue
		}
		o.tries[uid]++
		if o.tries[uid] > 1 && time.Since(deleted.Time) >= l.pace.Stale {
			v(fmt.Sprintf("%s adds a finalizer to an object that is being deleted, which the server refuses each time", cluster.Describe(r)))
		}
	}
}
