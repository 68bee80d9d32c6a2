// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/shard"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// Reconcile implements [reconcile.Reconciler]. While another process may have the object, no handler is
// called.
func (k *kind) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel, err := tenure.Begin(ctx)
	defer cancel()
	if errors.Is(err, tenure.ErrExpired) {
		return reconcile.Result{RequeueAfter: tenure.RequeueAfter}, nil
	}
	return k.reconcile(ctx, request)
}

// claim claims the kinds of handlers for their controllers, in a ring.
func (r *Registry) claim(entries []*entry) error {
	for _, e := range entries {
		if err := r.options.Shard.Claim(e.kind.gvk.GroupKind(), r.controllerName(e.kind)); err != nil {
			return named(e.name, err)
		}
	}
	return nil
}

// selects adds the selector of the shard to the limits of a kind, whose cache replaces that of the
// manager.
func (r *Registry) selects(key kindKey, selector labels.Selector) labels.Selector {
	return r.options.Shard.Selects(key.gvk.GroupKind(), selector)
}

// mayCall reports whether handlers may be called for the object: it is this shard's. One that is to
// be moved is handed over, as no handler runs for it.
func (p *pass) mayCall(ctx context.Context) (bool, error) {
	k := p.kind
	ours := k.registry.options.Shard
	switch {
	case ours == nil:
		return true, nil
	case !ours.Holds():
		return false, nil
	case p.object == nil:
		return true, p.findMoved(ctx)
	}
	verdict, err := ours.Check(ctx, client.WithFieldOwner(k.registry.base, k.registry.options.Name), k.key.gvk.GroupKind(), p.object)
	if verdict == shard.VerdictDrained {
		k.due.take(p.name, p.began)
		for _, e := range *k.handlers.Load() {
			e.tries.Forget(p.name)
		}
		p.start(ctx)
		if p.journal != nil {
			p.journal.Note(ctx, journal.Gated{Reason: step.ReasonOtherShard, Message: fmt.Sprintf("%s has handed it over", ours)})
		}
		p.object = nil
	}
	return verdict == shard.VerdictOurs, err
}

// findMoved finds out whether an object that is not in the cache was deleted, or is another shard's
// now: no handler is called for that.
func (p *pass) findMoved(ctx context.Context) error {
	k := p.kind
	kind := k.key.gvk.GroupKind()
	p.moved = k.registry.options.Shard.Moves(kind, p.name)
	defer k.registry.options.Shard.Forget(kind, p.name)
	if p.moved || !slices.ContainsFunc(*k.handlers.Load(), func(e *entry) bool { return e.gone != nil }) {
		return nil
	}
	living := &metav1.PartialObjectMetadata{}
	living.SetGroupVersionKind(k.key.gvk)
	err := k.registry.live.Get(ctx, p.name, living)
	p.moved = err == nil
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking whether the object was deleted, or moved to another shard: %w", err)
	}
	return nil
}
