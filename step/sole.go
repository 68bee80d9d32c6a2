// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"reflect"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A summary is the claim of an engine to the computed conditions of a kind. Two engines of one
// manager that both compute Ready for the same objects would overwrite each other for ever.
type summary struct{ engine string }

type summaryKey struct {
	client uintptr // the address of the manager's client, which the engine keeps alive
	kind   schema.GroupKind
}

var (
	summariesMu sync.Mutex // for summaries
	// summaries has weak pointers, because an engine that is garbage claims nothing.
	summaries = make(map[summaryKey]weak.Pointer[summary])
)

// claimSummary returns an error if another engine with the same client computes the conditions of
// the kind. A kind without conditions may have several engines.
func (e *Engine[T]) claimSummary() error {
	client := reflect.ValueOf(e.options.Client)
	if _, err := condition.Of(e.newObject()); err != nil || client.Kind() != reflect.Pointer {
		return nil
	}
	key := summaryKey{client.Pointer(), e.kind}
	summariesMu.Lock()
	defer summariesMu.Unlock()
	for key, claimed := range summaries {
		if claimed.Value() == nil {
			delete(summaries, key)
		}
	}
	if other := summaries[key].Value(); other != nil && other != e.summary {
		return fmt.Errorf("engine %q: engine %q of the same manager reconciles %s, too: both would compute the conditions Ready, Reconciling and Stalled. "+
			"Give the steps of both to one engine", e.options.Name, other.engine, e.kind)
	}
	e.summary = &summary{e.options.Name}
	summaries[key] = weak.Make(e.summary)
	return nil
}
