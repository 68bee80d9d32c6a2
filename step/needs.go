// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/permission"
)

// A UseDeclarer is a [Step] that says what it does with objects besides watching them, so that the
// permissions of the operator follow: see [Engine.Needs].
type UseDeclarer[T client.Object] interface {
	Step[T]
	// Uses declares what the step does with objects of other kinds, and with the subresources of its
	// own. What a [Watcher] watches it also reads, and what the engine writes needs no declaration.
	Uses() []permission.Use
}

// uses are those that are known when the controller is made.
type uses struct {
	mu   sync.Mutex
	list []permission.Use // guarded by mu
}

func (u *uses) add(use permission.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, use)
}

func (u *uses) all() []permission.Use {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]permission.Use(nil), u.list...)
}

// Needs returns what the operator has to be allowed to do for this engine, each need with who has
// it. It follows from
//
//   - the kind of the engine: it is read, its status is written, and its metadata if there is a
//     finalizer;
//   - what the steps watch, and what they declare as a [UseDeclarer];
//   - Options.Uses, and the watches of [Engine.WatchNamed], once they are made;
//   - Options.Recorder, which writes Kubernetes events.
//
// What else a step does in its code is not known. A simulation shows it: a test compares Needs with
// what sim.Needs returns, and both with the role.
func (e *Engine[T]) Needs() ([]permission.Need, error) {
	obj, by := client.Object(e.resource.newObject()), "engine "+e.options.Name
	all := []permission.Use{{Object: obj, Verbs: permission.Reads(), By: by + ": reads what it reconciles"}}
	if status := reflect.ValueOf(obj).Elem().FieldByName("Status"); status.IsValid() && (!e.options.Partial || len(e.plan.declared) > 0) {
		all = append(all, permission.Use{Object: obj, Subresource: "status", Verbs: []string{"patch"}, By: by + ": saves the status"})
	}
	if e.finalizers.own != "" || len(e.finalizers.retired) > 0 {
		all = append(all, permission.Use{Object: obj, Verbs: []string{"patch"}, By: by + ": keeps its finalizer"})
	}
	for _, u := range e.options.Uses {
		u.By = declared(u.By, by)
		all = append(all, u)
	}
	for _, p := range e.plan.parts {
		all = append(all, usesOf(p.step)...)
	}
	needs, err := permission.Needs(e.options.Client, append(all, e.uses.all()...)...)
	if err != nil {
		return nil, fmt.Errorf("needs of engine %q: %w", e.options.Name, err)
	}
	if e.options.Recorder != nil {
		needs = append(needs, recorderNeeds(by)...)
	}
	return permission.Merge(needs), nil
}

// usesOf returns what a step declares.
func usesOf[T client.Object](s Step[T]) []permission.Use {
	var all []permission.Use
	by := fmt.Sprintf("step %q", s.Name())
	if w, ok := s.(Watcher[T]); ok {
		for _, watch := range w.Watches() {
			all = append(all, permission.Use{Object: watch.Object, Verbs: permission.Reads(), By: by + ": watches them"})
		}
	}
	if d, ok := s.(UseDeclarer[T]); ok {
		for _, u := range d.Uses() {
			u.By = declared(u.By, by)
			all = append(all, u)
		}
	}
	return all
}

// declared returns who has a use that a step or the options declare.
func declared(what, by string) string {
	if what == "" {
		return by
	}
	return by + ": " + what
}

// recorderNeeds are those of an event recorder.
func recorderNeeds(by string) []permission.Need {
	var needs []permission.Need
	for _, verb := range []string{"create", "patch"} {
		needs = append(needs, permission.Need{Group: "events.k8s.io", Resource: "events", Verb: verb, By: []string{by + ": records events"}})
	}
	return needs
}
