// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"reflect"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A claim is that of an engine to the computed conditions of a kind. Two engines of one manager
// that both compute Ready for the same objects would overwrite each other for ever.
type claim struct {
	engine string
	client client.Client // as long as the claim lives, no other client has its address
}

type claimKey struct {
	client uintptr // the address of the manager's client
	kind   schema.GroupKind
}

var (
	claimsMu sync.Mutex // for claims
	// claims has weak pointers, because an engine that is garbage claims nothing.
	claims = make(map[claimKey]weak.Pointer[claim])
)

// claimConditions returns an error if another engine with the same client computes the conditions
// of the kind. A kind without conditions may have several engines.
func (e *Engine[T]) claimConditions() error {
	address := reflect.ValueOf(e.options.Client)
	if _, err := condition.Of(e.resource.newObject()); err != nil || address.Kind() != reflect.Pointer || e.options.Partial {
		return nil
	}
	key := claimKey{address.Pointer(), e.resource.kind}
	claimsMu.Lock()
	defer claimsMu.Unlock()
	for key, other := range claims {
		if other.Value() == nil {
			delete(claims, key)
		}
	}
	if other := claims[key].Value(); other != nil && other != e.claim {
		return fmt.Errorf("engine %q: engine %q of the same manager reconciles %s, too: both would compute the conditions Ready, Reconciling and Stalled. "+
			"Give the steps of both to one engine, or set Options.Partial in one of them", e.options.Name, other.engine, e.resource.kind)
	}
	e.claim = &claim{e.options.Name, e.options.Client}
	claims[key] = weak.Make(e.claim)
	return nil
}
