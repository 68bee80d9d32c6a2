// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"reflect"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/ctrlkit/ctrlkit/internal/cluster/references"
	"github.com/ctrlkit/ctrlkit/internal/engine/wiring"
)

// target is what the watches of the engine lead to.
func (e *Engine[T]) target() wiring.Target {
	return wiring.Target{
		Client: e.options.Client, Type: reflect.TypeFor[T](), Kind: e.resource.kind, Log: log.Log.WithName(e.options.Name),
		Namespaced: e.causes.Namespaced, Wrap: e.WrapHandler, RecordsChildren: true, Readers: e.readersOf,
		Own: func(obj client.Object) bool {
			_, own := e.resource.is(obj)
			return own
		},
	}
}

// eachWatch calls connect for each watch that the options and the steps declare, and returns the
// kinds that they watch, and those of which they watch only what the objects own.
func (e *Engine[T]) eachWatch(connect func(declared Watch, w wiring.Watch) error) (kinds, owned []schema.GroupKind, err error) {
	to := e.target()
	wire := func(by string, watches []Watch) error {
		for i, declared := range watches {
			w, err := declared.Wire(to)
			if err == nil {
				err = connect(declared, w)
			}
			if err != nil {
				return fmt.Errorf("%s: watch %d: %w", by, i+1, err)
			}
			if w.OnlyOwned {
				owned = append(owned, w.Kind.GroupKind())
			} else {
				kinds = append(kinds, w.Kind.GroupKind())
			}
		}
		return nil
	}
	if err := wire("Options.Watches", e.options.Watches); err != nil {
		return nil, nil, err
	}
	for _, p := range e.plan.parts {
		if p.Watches == nil {
			continue
		}
		watches := p.Watches()
		e.uses.setWatched(p.Name, watches)
		if err := wire(fmt.Sprintf("step %q", p.Name), watches); err != nil {
			return nil, nil, err
		}
	}
	return kinds, owned, nil
}

// watchDeclared adds the watches that the options and the steps declare, and returns their kinds.
func (e *Engine[T]) watchDeclared(b *builder.Builder) (kinds, owned []schema.GroupKind, err error) {
	return e.eachWatch(func(declared Watch, w wiring.Watch) error {
		if w.Index != nil {
			b.WithEventFilter(w.Index)
		}
		missing := declared.Later == nil && e.isMissing(w.Kind)
		if missing {
			declared.Later = e.options.Cache
		}
		if declared.Later != nil {
			e.watchLater(b, w, declared.Later, missing)
			return nil
		}
		b.Watches(w.Object, w.Handler, builder.WithPredicates(w.Filter))
		if e.options.Cache == nil {
			return nil
		}
		return w.RegisterIndexes(e.options.Cache)
	})
}

// isMissing reports whether the API server does not have a kind that is watched, so that the watch
// is one that may begin later.
func (e *Engine[T]) isMissing(gvk schema.GroupVersionKind) bool {
	_, err := e.options.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if !apimeta.IsNoMatchError(err) {
		return false
	}
	logger := log.Log.WithName(e.options.Name).WithValues("kind", gvk.String())
	if e.options.Cache == nil {
		logger.Info("The API server does not have a kind that is watched: the operator ends unless its definition comes within two minutes. " +
			"Set step.Options.Cache, so that only the objects which need it wait")
		return false
	}
	logger.Info("The API server does not have a kind that is watched: the objects which need it wait for its definition")
	return true
}

// readersOf returns who has read objects of a kind.
func (e *Engine[T]) readersOf(kind schema.GroupKind) *references.Readers {
	if e.readers == nil {
		e.readers = make(map[schema.GroupKind]*references.Readers)
	}
	if e.readers[kind] == nil {
		e.readers[kind] = &references.Readers{}
	}
	return e.readers[kind]
}

// Wire returns what the engine is to be connected to by a program that feeds it with events of its
// own, as package handlers does. It is called once, instead of [Engine.Complete]. The error is a
// mistake in a watch.
//
// Watched are the reconciled kind and all other kinds of which the caller requests reconciles by
// itself, as empty objects. With them, the engine reports a kind that steps read and nothing
// watches, as that of [Engine.Complete] does; without any it does not.
//
// The caller passes each event of the reconciled kind, and of the watched ones, to the filters, after
// the cache of Options.Client has it.
func (e *Engine[T]) Wire(watched ...client.Object) (wiring.Wiring, error) {
	kinds, err := kindsOf(e.options.Client, watched)
	if err != nil {
		return wiring.Wiring{}, err
	}
	all := wiring.Wiring{Filters: []predicate.Predicate{e.EventFilter()}}
	declared, owned, err := e.eachWatch(func(_ Watch, w wiring.Watch) error {
		if w.Index != nil {
			all.Filters = append(all.Filters, w.Index)
		}
		all.Watches = append(all.Watches, w)
		return nil
	})
	if err != nil {
		return wiring.Wiring{}, err
	}
	e.sees = true
	if len(watched) > 0 {
		e.unwatched.watch(e.resource.kind, append(kinds, declared...), owned)
	}
	return all, nil
}
