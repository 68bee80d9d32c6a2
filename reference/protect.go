// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/step"
)

// ConditionInUse is True while an object that is being deleted waits for those that use it. Ready
// does not depend on it.
const ConditionInUse = "InUse"

// Reasons of the condition InUse.
const (
	reasonNotDeleted = "NotDeleted"
	reasonNotUsed    = "NotUsed"
	reasonUsed       = "Used"
)

// A User knows which objects use one of type R: a [Reference] to R.
type User[R client.Object] interface {
	// users returns the names of the objects that use obj: "Consumer default/billing".
	users(ctx context.Context, req *step.Request[R], list lister) ([]string, error)

	// watch declares the watch of these objects.
	watch() step.Watch

	// hold gives the references the finalizer that they put on what they use.
	hold(h *holds) error
}

// Protect returns a step that keeps an object which is being deleted until nothing uses it any
// more. It is the last step of its engine: the last one cleans up first.
//
//   - It works alone, as for a kind that has nothing to clean up, such as a configuration: the engine
//     puts its finalizer on each object once the steps before this one have passed.
//   - It waits also if the policy of the object is to leave what that stands for, or only to observe
//     it: those that use the object may need it to find that.
//   - A use ends when the object that uses this one is gone, or refers to another one.
//   - An object whose policy only observes, or skips, uses what it refers to like any other. A paused
//     one uses what it names, although no reconcile has recorded that.
//   - An object that waits for this one to be ready does not use it.
//   - An object of another namespace that may not refer to this one does not use it, whatever its
//     annotations say: see [Options.Allowed]. In a namespace, who may write objects may block a deletion.
//   - The users are listed from the cache, and once more from the API server before the object is
//     given up.
func Protect[R client.Object](by ...User[R]) step.Step[R] {
	p := &protection[R]{by}
	return step.Step[R]{
		Name: "Users", Cleanup: p.awaitUsers, Post: markNotDeleted[R],
		// It claims nothing but the finalizer, which is written with the claim of a step before this
		// one, if there is any, and otherwise before the object is ready.
		Claim:      func(context.Context, *step.Request[R]) error { return nil },
		Conditions: []condition.Declaration{{Type: ConditionInUse, AbnormalTrue: true, Informational: true}},
		Watches:    p.watches,
	}
}

type protection[R client.Object] struct{ by []User[R] }

func (p *protection[R]) watches() []step.Watch {
	all := make([]step.Watch, len(p.by))
	for i, u := range p.by {
		all[i] = u.watch()
	}
	return all
}

func markNotDeleted[R client.Object](_ context.Context, req *step.Request[R]) error {
	if req.Conditions != nil && req.Object.GetDeletionTimestamp().IsZero() {
		req.Conditions.MarkHealthy(ConditionInUse, reasonNotDeleted, "")
	}
	return nil
}

// awaitUsers waits until nothing uses an object that is being deleted.
func (p *protection[R]) awaitUsers(ctx context.Context, req *step.Request[R]) error {
	using, err := p.users(ctx, req)
	switch {
	case err != nil:
		return err
	case len(using) == 0:
		if req.Conditions != nil {
			req.Conditions.MarkHealthy(ConditionInUse, reasonNotUsed, "")
		}
		return nil
	}
	who := named(using)
	if req.Conditions != nil {
		req.Conditions.MarkUnhealthy(ConditionInUse, condition.SeverityInfo, reasonUsed, "it is deleted after "+who)
	}
	return ctrlkit.Wait(who + " to be deleted")
}

// named returns the first names of those that use an object, and how many more there are.
func named(using []string) string {
	slices.Sort(using)
	who := strings.Join(using[:min(len(using), 5)], ", ")
	if more := len(using) - 5; more > 0 {
		who += fmt.Sprintf(" and %d more", more)
	}
	return who
}

// users returns who uses an object. The API server is asked if the cache has none.
func (p *protection[R]) users(ctx context.Context, req *step.Request[R]) ([]string, error) {
	for _, list := range []lister{cached(req), live(req)} {
		var all []string
		for _, u := range p.by {
			some, err := u.users(ctx, req, list)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		if len(all) > 0 {
			return all, nil
		}
	}
	return nil, nil
}

// A lister lists objects of the kind of one.
type lister func(ctx context.Context, of client.Object, options ...client.ListOption) ([]client.Object, error)

// cached lists from the cache.
func cached[R client.Object](req *step.Request[R]) lister {
	return func(ctx context.Context, of client.Object, options ...client.ListOption) ([]client.Object, error) {
		return references.List(ctx, req.Client, of, options...)
	}
}

// live lists from the API server, and only metadata: they have the uses. Without Request.APIReader
// it lists nothing.
func live[R client.Object](req *step.Request[R]) lister {
	return func(ctx context.Context, of client.Object, options ...client.ListOption) ([]client.Object, error) {
		if req.APIReader == nil {
			return nil, nil
		}
		return references.ListMetadata(ctx, req.APIReader, req.Client, of, options...)
	}
}

// users implements [User].
func (r *Reference[T, R]) users(ctx context.Context, req *step.Request[R], list lister) ([]string, error) {
	var options []client.ListOption
	if namespace := req.Object.GetNamespace(); namespace != "" && !r.elsewhere() {
		options = append(options, client.InNamespace(namespace))
	}
	of := newObject[T]()
	kind := kindOf(req.Client, of)
	all, err := list(ctx, of, options...)
	if err != nil {
		return nil, fmt.Errorf("listing each %s: %w", kind, err)
	}
	used := useOf(req.Object)
	var using []string
	for _, obj := range all {
		if obj.GetUID() == req.Object.GetUID() || !r.mayRefer(obj.GetNamespace(), req.Object) {
			continue // who may not refer to it can't keep it, whatever its annotations say
		}
		if slices.Contains(r.recordOf(obj).all(), used) || slices.Contains(r.pausedOn(obj), used.key) {
			using = append(using, kind+" "+keyText(obj))
		}
	}
	return using, nil
}

// pausedOn returns what a paused object names: no reconcile records that it uses it. Each key is there
// with a namespace and without, because it is not known whether the kind has namespaces.
func (o *Options[T, R]) pausedOn(obj client.Object) []client.ObjectKey {
	from, ok := obj.(T) // a list of the API server has only metadata
	if !ok || !step.IsPaused(obj) {
		return nil
	}
	var keys []client.ObjectKey
	for _, target := range o.targets(from) {
		if key := (client.ObjectKey{Namespace: target.Namespace, Name: target.Name}); key.Name != "" {
			keys = append(keys, references.InNamespaceOf(obj, key, true), references.InNamespaceOf(obj, key, false))
		}
	}
	return keys
}

// watch implements [User]: it reports the end of each use.
func (r *Reference[T, R]) watch() step.Watch {
	r.memory.keep()
	return step.Watch{
		Object: newObject[T](),
		Mapped: func(obj client.Object, _ schema.GroupKind) []client.ObjectKey {
			var keys []client.ObjectKey
			for _, u := range append(r.recordOf(obj).all(), r.memory.takeDropped(obj.GetUID())...) {
				keys = append(keys, u.key)
			}
			r.memory.forgetEnded(obj.GetUID())
			return append(keys, r.pausedOn(obj)...)
		},
		Changed: func(before, now client.Object) bool {
			if now == nil {
				r.memory.end(before.GetUID())
				return true
			}
			if before == nil {
				return r.memory.hasDropped(now.GetUID())
			}
			return r.memory.hasDropped(now.GetUID()) || len(without(r.recorded(before).all(), r.recordOf(now).all())) > 0 ||
				!slices.Equal(r.pausedOn(before), r.pausedOn(now))
		},
	}
}
