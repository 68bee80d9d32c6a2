// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/step"
)

// markerName returns the name of the Lease that says that the claims of a type are complete.
func markerName(kind string) string { return "external-claims-" + claimsOf(kind) }

// migrate makes claims of the records that objects have in their annotations, once for a type and a
// namespace of claims: former versions of this package have kept nothing else. From then on no annotation
// counts as a record. An id that several objects record as theirs gets no claim: a person decides.
func migrate[T client.Object](ctx context.Context, e *external[T], r registrar, req *step.Request[T]) error {
	r.migration.Lock()
	defer r.migration.Unlock()
	if r.migrated {
		return nil
	}
	all, err := references.List(track.WithOwn(ctx), liveLists{req.Client, r.reader}, req.Object)
	if apierrors.IsForbidden(err) { // the operator may see some namespaces, which its cache has
		all, err = references.List(ctx, req.Client, req.Object)
	}
	if err != nil {
		return fmt.Errorf("reading the objects whose resources get claims: %w", err)
	}
	recorded := recordedPlaces(e, req, all)
	since, n := time.Now(), 0
	for _, p := range slices.SortedFunc(maps.Keys(recorded), func(a, b resourceKey) int { return strings.Compare(a.claimName(), b.claimName()) }) {
		users := recorded[p]
		if len(users) > 1 {
			req.Logger.Info("A resource that several objects record as theirs is left to a person", "id", p.id, "system", p.where(), "objects", keysOf(users))
			continue
		}
		o := ownership[T]{users[0]}
		if h := r.of(o.req.Object.GetUID()); h != nil {
			continue // made before an earlier attempt has failed
		}
		if _, err := r.create(ctx, &claim{resourceKey: p, holder: o.holder(), since: time.Now()}); err != nil {
			return err
		}
		if n++; n%1000 == 0 {
			req.Logger.Info("Claims are made of the records of objects", "made", n, "of", len(recorded), "since", since)
		}
	}
	if err := r.client.Create(track.WithOwn(ctx), marker(r.namespace, r.kind)); err != nil && !apierrors.IsAlreadyExists(err) {
		return r.failed("noting that the claims are complete", err)
	}
	r.migrated = true
	return nil
}

// recordedPlaces returns the resources that the annotations of objects record as theirs, with the objects.
func recordedPlaces[T client.Object](e *external[T], req *step.Request[T], all []client.Object) map[resourceKey][]*session[T] {
	recorded := make(map[resourceKey][]*session[T])
	for _, obj := range all {
		t, ok := obj.(T)
		if !ok {
			continue
		}
		other := &step.Request[T]{Client: req.Client, APIReader: req.APIReader, Logger: req.Logger, Object: t}
		s := &session[T]{external: e, req: other, id: IDOf(obj)}
		r, err := recordOf(obj)
		if err == nil && s.id != "" && r.isOf(obj, s.id) && (r.step == created || r.step == begun) {
			recorded[s.key()] = append(recorded[s.key()], s)
		}
	}
	return recorded
}

// keysOf returns the keys of the objects of sessions.
func keysOf[T client.Object](sessions []*session[T]) []string {
	all := make([]string, len(sessions))
	for i, s := range sessions {
		all[i] = client.ObjectKeyFromObject(s.req.Object).String()
	}
	return all
}

// marker returns the Lease that says that the claims of a type are complete. Who deletes it has them made of
// the annotations once more, such as after the claims were lost.
func marker(namespace, kind string) client.Object {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"holderIdentity": "the claims of " + kind + " are complete"}}}
	obj.SetGroupVersionKind(leaseKind)
	obj.SetNamespace(namespace)
	obj.SetName(markerName(kind))
	obj.SetLabels(map[string]string{claimsLabel: claimsOf(kind)})
	return obj
}

// A liveLists is a client that lists live.
type liveLists struct {
	client.Client
	live client.Reader
}

// List implements [client.Reader].
func (l liveLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return l.live.List(ctx, list, options...)
}
