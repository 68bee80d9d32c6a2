// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// fight is one with the operator over the fields of an object that a write has changed.
type fight struct {
	before, after map[string]any // the object around the write
	applied       bool           // by server-side apply
	rounds        int
}

// ContentOf returns the object of a request as it is, for [Actors.Fight], or nil.
func (a *Actors) ContentOf(r *apiserver.Request) map[string]any {
	target, err := a.cluster.LookUp(cluster.TargetOf(r))
	if err != nil {
		return nil
	}
	return target.Object
}

// Fight makes another controller want what a write has just changed as it was before.
func (a *Actors) Fight(r *apiserver.Request, before map[string]any) {
	a.fights[cluster.TargetOf(r)] = &fight{before: before, after: a.ContentOf(r), applied: cluster.IsApply(r), rounds: fightRounds}
}

// ContinueFights undoes a write to an object that another controller wants otherwise.
func (a *Actors) ContinueFights(r *apiserver.Request) {
	of := cluster.TargetOf(r)
	f, ok := a.fights[of]
	if !ok || f.rounds == 0 || r.Subresource == "status" {
		return
	}
	f.rounds--
	a.time.After(fightInterval, func() {
		target, err := a.cluster.LookUp(of)
		if err != nil || target.GetDeletionTimestamp() != nil || !f.undo(target.Object) {
			return
		}
		a.ask(http.MethodPut, target.Path, "application/json", target.Object)
	})
}

// undo gives the fields of an object that the write has changed the values from before it, and
// reports whether there were any. It leaves alone what has another value than the write has set by
// now, and metadata and status. It does not give back what an apply has removed: the operator has
// given that field up, and would have no part in what another controller makes of it.
func (f *fight) undo(now map[string]any) bool {
	spec := func(object map[string]any) map[string]any {
		object = maps.Clone(object)
		maps.DeleteFunc(object, func(k string, _ any) bool {
			return slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, k)
		})
		return object
	}
	return f.undoMap(spec(f.before), spec(f.after), now)
}

func (f *fight) undoMap(before, after, now map[string]any) (undone bool) {
	keys := maps.Clone(before)
	maps.Copy(keys, after)
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		b, wasThere := before[k]
		a, isThere := after[k]
		n, stillThere := now[k]
		within, structured := f.undoWithin(b, a, n)
		switch {
		case reflect.DeepEqual(b, a), f.applied && !isThere:
		case structured:
			undone = undone || within
		case isThere != stillThere || !reflect.DeepEqual(a, n): // changed again since
		case wasThere:
			now[k], undone = b, true
		default:
			delete(now, k)
			undone = true
		}
	}
	return undone
}

// undoWithin undoes what has changed within a value, if it is structured: it was and is a map, or a
// list of as many maps.
func (f *fight) undoWithin(before, after, now any) (undone, structured bool) {
	if b, ok := before.(map[string]any); ok {
		a, isMap := after.(map[string]any)
		n, stillMap := now.(map[string]any)
		if !isMap || !stillMap {
			return false, false
		}
		return f.undoMap(b, a, n), true
	}
	b, _ := before.([]any)
	a, _ := after.([]any)
	n, _ := now.([]any)
	if len(b) != len(a) || len(a) != len(n) || len(n) == 0 {
		return false, false
	}
	for i := range n {
		within, item := f.undoWithin(b[i], a[i], n[i])
		if !item {
			return false, false
		}
		undone = undone || within
	}
	return undone, true
}
