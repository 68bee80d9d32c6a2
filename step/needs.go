// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
)

// uses are those that are known when the controller is made.
type uses struct {
	mu       sync.Mutex                  // guards what follows
	declared map[string][]permission.Use // by the name of a step, what it watches; nil until the controller is made
}

// setWatched records what a step watches, which it is asked only once for each controller.
func (u *uses) setWatched(step string, watches []Watch) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.declared == nil {
		u.declared = map[string][]permission.Use{}
	}
	u.declared[step] = usesOfWatches(fmt.Sprintf("step %q", step), watches)
}

// watched returns what a step watches. known is false if the step was not asked.
func (u *uses) watched(step string) (list []permission.Use, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	list, known = u.declared[step]
	return list, known
}

func usesOfWatches(by string, watches []Watch) []permission.Use {
	var list []permission.Use
	for _, w := range watches {
		list = append(list, permission.Use{Object: w.Object, Verbs: permission.Reads(), By: by + ": watches them"})
	}
	return list
}

// Needs returns what the operator has to be allowed to do for this engine, each need with who has
// it. It follows from
//
//   - the kind of the engine: it is read, its status is written, and its metadata if there is a
//     finalizer;
//   - what the steps watch, and what they declare as Step.Uses;
//   - Options.Watches and Options.Uses;
//   - Options.Recorder, which writes Kubernetes events.
//
// Other requests of a step's code are not known. A simulation shows it: a test compares Needs with
// what sim.Needs returns, and both with the role.
func (e *Engine[T]) Needs() ([]permission.Need, error) {
	obj, by := client.Object(e.resource.newObject()), "engine "+e.options.Name
	all := []permission.Use{{Object: obj, Verbs: permission.Reads(), By: by + ": reads what it reconciles"}}
	if hasStatusField(obj) && (!e.options.Partial || len(e.plan.declared) > 0) {
		all = append(all, permission.Use{Object: obj, Subresource: "status", Verbs: []string{"patch"}, By: by + ": saves the status"})
	}
	if e.finalizers.own != "" || len(e.finalizers.retired) > 0 {
		all = append(all, permission.Use{Object: obj, Verbs: []string{"patch"}, By: by + ": keeps its finalizer"})
	}
	if e.options.Shard != nil {
		all = append(all, permission.Use{Object: obj, Verbs: []string{"patch"}, By: by + ": hands objects over to other shards"})
	}
	all = append(all, usesOfWatches(by, e.options.Watches)...)
	for _, u := range e.options.Uses {
		u.By = declared(u.By, by)
		all = append(all, u)
	}
	for _, p := range e.plan.parts {
		all = append(all, e.usesOf(p)...)
	}
	needs, err := permission.Needs(e.options.Client, all...)
	if err != nil {
		return nil, fmt.Errorf("needs of engine %q: %w", e.options.Name, err)
	}
	if e.options.Recorder != nil {
		needs = append(needs, recorderNeeds(by)...)
	}
	return permission.Merge(needs), nil
}

// usesOf returns what a step declares.
func (e *Engine[T]) usesOf(s *part[T]) []permission.Use {
	by := fmt.Sprintf("step %q", s.Name)
	all, known := e.uses.watched(s.Name)
	if s.Watches != nil && !known { // the controller, when it is made, asks again
		all = usesOfWatches(by, s.Watches())
	}
	for _, u := range s.Uses {
		if _, own := u.Object.(T); own && u.Object.GetObjectKind().GroupVersionKind().Empty() {
			u.Object = e.resource.newObject() // a step can't know the kind of untyped ones
		}
		u.By = declared(u.By, by)
		all = append(all, u)
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
