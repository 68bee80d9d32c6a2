// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Retire stops the handlers as [Registration.Stop] does, and then takes their finalizers off all
// objects that have them, without calling OnRemove: what that would have cleaned up stays. It is
// for handlers that will not come back, so that their objects can be deleted.
//
//   - All other finalizers stay, those of other handlers, too.
//   - The objects are listed by the API server, so that none is missed which the cache does not
//     have. That are two or more requests for each kind, and one for each object.
//   - The error names the objects that still have a finalizer, and why. Retire may be called again,
//     also after Stop.
//   - It must not be called by a handler of the registration itself, nor while another process has
//     the same handlers: they would put the finalizers back. The first of these is an error.
func (s *Registration) Retire(ctx context.Context) error {
	for _, e := range runningIn(ctx) {
		if slices.Contains(s.entries, e) {
			return named(e.name, errors.New("it can't be retired by a call of its own, which may put its finalizer back"))
		}
	}
	if err := s.Stop(ctx); err != nil {
		return fmt.Errorf("retiring handlers: waiting until none of them is running: %w", err)
	}
	var errs []error
	for _, e := range s.entries {
		if e.engine != nil && e.engine.Finalizer() != "" {
			errs = append(errs, named(e.name, s.registry.retire(ctx, e)))
		}
	}
	return errors.Join(errs...)
}

// retire takes the finalizer of a stopped handler off all objects.
func (r *Registry) retire(ctx context.Context, e *entry) error {
	options, ok := r.options.Kinds[e.kind.gvk.GroupKind()]
	if !ok {
		options = r.options.Default
	}
	namespaces := options.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	remaining := remains{finalizer: e.engine.Finalizer(), kind: e.kind}
	for _, namespace := range namespaces {
		if err := r.retireIn(ctx, e, namespace, &remaining); err != nil {
			return errors.Join(remaining.err(), fmt.Errorf("finding the objects with finalizer %q: %w", e.engine.Finalizer(), err))
		}
	}
	return remaining.err()
}

// objectsPerList is how many objects a list for [Registration.Retire] has at most.
const objectsPerList = 500

func (r *Registry) retireIn(ctx context.Context, e *entry, namespace string, remaining *remains) error {
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := list.Continue
		list = &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(e.kind.gvk.GroupVersion().WithKind(e.kind.gvk.Kind + "List"))
		err := r.live.List(ctx, list, client.InNamespace(namespace), client.Limit(objectsPerList), client.Continue(next))
		if apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil // the kind has disappeared, and its objects with it
		}
		if err != nil {
			return err
		}
		for i := range list.Items {
			obj := &list.Items[i]
			obj.SetGroupVersionKind(e.kind.gvk)
			if err := r.release(ctx, obj, e); err != nil {
				remaining.add(obj, err)
			}
		}
		if list.Continue == "" {
			return nil
		}
	}
}

// mostReleases is how often a finalizer is tried to be taken off an object that others change.
const mostReleases = 10

// release takes the finalizer of a handler off an object.
func (r *Registry) release(ctx context.Context, obj *metav1.PartialObjectMetadata, e *entry) error {
	for try := 1; ; try++ {
		if !slices.Contains(obj.Finalizers, e.engine.Finalizer()) {
			return nil
		}
		before := obj.DeepCopy()
		obj.Finalizers = slices.DeleteFunc(slices.Clone(obj.Finalizers), func(name string) bool { return name == e.engine.Finalizer() })
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		err := r.base.Patch(ctx, obj, patch, client.FieldOwner(e.engineName))
		if !apierrors.IsConflict(err) || try == mostReleases {
			return client.IgnoreNotFound(err)
		}
		newest := &metav1.PartialObjectMetadata{}
		newest.SetGroupVersionKind(e.kind.gvk)
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(before), newest); err != nil {
			return client.IgnoreNotFound(err)
		}
		if newest.UID != before.UID {
			return nil // what was listed is gone; the other one was created without the handler
		}
		obj = newest
	}
}

// remains are the objects that still have a finalizer.
type remains struct {
	finalizer string
	kind      kindKey
	errs      []error
	more      int // that are not in errs
}

// mostNamed is how many objects an error of [Registration.Retire] names for each handler.
const mostNamed = 10

func (r *remains) add(obj client.Object, err error) {
	if len(r.errs) == mostNamed {
		r.more++
		return
	}
	r.errs = append(r.errs, fmt.Errorf("finalizer %q stays on %s %s: %w", r.finalizer, r.kind, client.ObjectKeyFromObject(obj), err))
}

func (r *remains) err() error {
	if r.more > 0 {
		return errors.Join(append(slices.Clip(r.errs), fmt.Errorf("finalizer %q stays on %d more", r.finalizer, r.more))...)
	}
	return errors.Join(r.errs...)
}
