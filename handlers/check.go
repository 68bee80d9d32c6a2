// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"errors"
	"fmt"
)

// check returns what keeps handlers from being registered beside those that there are, and beside
// each other.
func (r *Registry) check(entries []*entry) error {
	var mistakes []error
	for i, e := range entries {
		for _, other := range entries[:i] {
			mistakes = append(mistakes, named(e.name, e.collides(other)))
		}
		for _, k := range r.kinds {
			for _, other := range *k.handlers.Load() {
				mistakes = append(mistakes, named(e.name, e.collides(other)))
			}
		}
	}
	return errors.Join(mistakes...)
}

// collides returns why two handlers can't be registered at the same time, nil if they can.
func (e *entry) collides(other *entry) error {
	if e.kind.gvk.GroupKind() != other.kind.gvk.GroupKind() {
		return nil
	}
	switch {
	case e.kind == other.kind && e.name == other.name:
		return fmt.Errorf("%s already has a handler of that name: errors and explanations could not distinguish them", e.kind)
	case e.engine == nil || other.engine == nil:
		return nil
	case e.engineName == other.engineName:
		return fmt.Errorf("its engine has the name of that of handler %q, %q: with it they would share a field owner and the children", other.name, e.engineName)
	case e.engine.Finalizer() != "" && e.engine.Finalizer() == other.engine.Finalizer():
		return fmt.Errorf("handler %q has the finalizer %q, too: the one that is done first would remove it", other.name, e.engine.Finalizer())
	case e.complete && other.complete:
		return fmt.Errorf("handler %q is Complete, too: both would compute the conditions Ready, Reconciling and Stalled of %s", other.name, e.kind)
	}
	return nil
}
