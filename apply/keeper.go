// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
)

// A keeper keeps the set of one owner, in one reconcile.
type keeper struct {
	*settings
	client    client.Client
	live      client.Reader // nil if there is none
	manager   string        // the field owner
	owner     client.Object
	ownerKind schema.GroupVersionKind
	identity  identity
	label     string
	labels    []string // with those of former names
	watched   *index   // nil if nothing feeds it
	states    *states
	dependOn  func(changes func() uint64) // of the request
	// remember writes an annotation of the owner.
	remember func(ctx context.Context, annotation, value string) error
	// event records a Kubernetes event about the owner; nil if nothing does.
	event func(eventType, reason, action, format string, args ...any)
	// remembered are the objects that the annotation names.
	remembered tracked
	unsaved    bool              // the owner does not have all that is in remembered
	former     map[string]string // what is to stay in annotations of former names and versions
	// runs are the contents of Jobs that have completed, as the owner says.
	runs runs
	left []Ref // see Set.Leave
}

// mostAtOnce is how many objects of a set are written at the same time.
const mostAtOnce = 8

// A state is how one object of a set is.
type state struct {
	item  *item
	ready bool
	// failed says that it will not become ready without a change of the spec.
	failed bool
	lacks  string // why it is not ready: "1 of 2 replicas updated"
	waits  string // what is waited for before it can be written
	unseen bool   // no event may report the end of that
	later  bool   // it waits for an earlier wave, which has the cause
	err    error
	// uid is that of an object of ours that exists, and created says that it did not before.
	uid     types.UID
	created bool
	// uncached says that the cache did not have it.
	uncached bool
	// object is as it is in the cluster, nil if that is not known. It belongs to the cache.
	object client.Object
}

// A result is what a set has come to.
type result struct {
	states  []state // in the order in which the objects were added
	pruned  []Ref
	err     error
	limited error // too many objects have left the set
}

// keep makes the objects of a set as they should be, and deletes those that have left it.
func (k *keeper) keep(ctx context.Context, set *Set) *result {
	r := k.keepAll(ctx, set)
	r.err = join(r.err, saveNotes(ctx, k))
	return r
}

func (k *keeper) keepAll(ctx context.Context, set *Set) *result {
	items, err := k.items(set)
	if err == nil {
		err = k.readTracked(ctx)
	}
	if err == nil {
		err = k.noteTracked(ctx, items)
	}
	if err != nil {
		return &result{err: err}
	}
	r := &result{states: make([]state, len(items))}
	for i, it := range items {
		r.states[i] = state{item: it}
	}
	all := r.waves()
	for i, wave := range all {
		k.each(ctx, wave)
		r.err = join(r.err, reopenNotes(ctx, k, wave), k.recordRuns(ctx, wave))
		noteUIDs(k, wave)
		for _, s := range wave {
			r.err = join(r.err, s.err)
		}
		written := !slices.ContainsFunc(wave, func(s *state) bool { return s.err != nil || s.waits != "" })
		if last := i == len(all)-1; !written || r.err != nil || !last && slices.ContainsFunc(wave, func(s *state) bool { return !s.ready }) {
			return r.blocked(all[i+1:], written)
		}
	}
	r.pruned, err = k.prune(ctx, items)
	if limit := (*limitError)(nil); errors.As(err, &limit) {
		r.limited, err = err, nil
	}
	r.err = join(r.err, err)
	return r
}

// waves returns the states of each wave, the first one first.
func (r *result) waves() [][]*state {
	var all [][]*state
	sorted := make([]*state, len(r.states))
	for i := range r.states {
		sorted[i] = &r.states[i]
	}
	slices.SortStableFunc(sorted, func(a, b *state) int { return cmp.Compare(a.item.policy.wave, b.item.policy.wave) })
	for i, s := range sorted {
		if i == 0 || s.item.policy.wave != sorted[i-1].item.policy.wave {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], s)
	}
	return all
}

// blocked notes that later waves were not reached.
func (r *result) blocked(later [][]*state, written bool) *result {
	for _, wave := range later {
		for _, s := range wave {
			s.later, s.waits = true, "the objects of an earlier wave to be ready"
			if !written {
				s.waits = "the objects of an earlier wave"
			}
		}
	}
	return r
}

// each ensures objects that do not depend on each other, at the same time: the last one in this
// goroutine, whose stack has grown already.
func (k *keeper) each(ctx context.Context, states []*state) {
	var wait sync.WaitGroup
	free := make(chan struct{}, mostAtOnce-1)
	last := len(states) - 1
	for _, s := range states[:last] {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			k.ensureGuarded(ctx, s)
		})
	}
	k.ensureGuarded(ctx, states[last])
	wait.Wait()
}

// ensureGuarded makes one object as it should be. A panic, of ReadyWhen, is its failure: nothing
// else guards the goroutine.
func (k *keeper) ensureGuarded(ctx context.Context, s *state) {
	defer func() {
		if v := recover(); v != nil {
			s.err = &ctrlkit.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	k.ensure(ctx, s)
}

// ensure makes one object as it should be, and notes how it is.
func (k *keeper) ensure(ctx context.Context, s *state) {
	if s.item.missing {
		*s = state{item: s.item, waits: s.item.definition()}
		return
	}
	c := &child{keeper: k, item: s.item}
	ensure := c.ensure
	if s.item.once != nil {
		ensure = c.ensureOnce
	}
	current, err := ensure(ctx)
	if isUnserved(err) { // the RESTMapper knows it still
		s.item.missing = true
		*s = state{item: s.item, waits: s.item.definition()}
		return
	}
	*s = state{item: s.item, created: c.created, uncached: c.unseen, object: current}
	if err == nil && c.ours {
		s.uid = current.GetUID()
	}
	switch wait := (*waitError)(nil); {
	case errors.As(err, &wait):
		s.waits, s.unseen = wait.what, wait.unseen
	case err != nil:
		s.err = err
	case s.item.once != nil && s.item.once.done:
		s.ready = true
	default:
		s.ready, s.failed, s.lacks, s.err = k.states.of(s.item, current)
	}
}

// isUnserved reports whether the API server does not have the path of a request, as opposed to its
// object: the definition of the kind has gone.
func isUnserved(err error) bool {
	return apierrors.IsNotFound(err) && strings.Contains(err.Error(), "the server could not find the requested resource")
}

// A waitError says that an object can't be written yet.
type waitError struct {
	what string
	// unseen says that the cache does not have the object. If it is gone before the cache lists its
	// kind again, no event reports that.
	unseen bool
}

func (w *waitError) Error() string { return "waits for " + w.what }

// namespaced reports whether objects of a kind have a namespace.
func (k *keeper) namespaced(gvk schema.GroupVersionKind) (bool, error) {
	if known, ok := k.states.scopes.Load(gvk); ok {
		return known.(bool), nil //nolint:errcheck // put there below
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	namespaced, err := k.client.IsObjectNamespaced(obj)
	if err == nil {
		k.states.scopes.Store(gvk, namespaced)
	}
	return namespaced, err
}
