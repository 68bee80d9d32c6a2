// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// newWidget returns a Widget as users create it.
func newWidget(namespace, name string) *widget.Widget {
	return &widget.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       widget.Spec{First: "one", Second: "two", Third: "three"},
	}
}

// isReady reports whether an operator has set that w is ready, for its newest generation.
func isReady(w *widget.Widget) bool {
	return w.Status.ObservedGeneration == w.Generation && meta.IsStatusConditionTrue(w.Status.Conditions, "Ready")
}

// A population is the Widgets of a namespace, and a watch that notes when each is ready and when
// each of their ConfigMaps was last created.
type population struct {
	user      client.WithWatch
	namespace string
	made      int // Widgets
	stop      func()

	mu      sync.Mutex // for all below
	ready   map[string]time.Time
	created map[string]creation // of ConfigMaps
	changed chan struct{}       // has room for one
}

type creation struct {
	uid types.UID
	at  time.Time
}

// watchPopulation watches a namespace that is empty.
func watchPopulation(ctx context.Context, user client.WithWatch, namespace string) (*population, error) {
	p := &population{
		user: user, namespace: namespace,
		ready: make(map[string]time.Time), created: make(map[string]creation), changed: make(chan struct{}, 1),
	}
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	p.stop = func() {
		cancel()
		done.Wait()
	}
	for _, list := range []client.ObjectList{&widget.List{}, &corev1.ConfigMapList{}} {
		events, err := user.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			p.stop()
			return nil, fmt.Errorf("watching a namespace: %w", err)
		}
		done.Go(func() { p.follow(ctx, list, events) })
	}
	return p, nil
}

// follow notes events until ctx is done. An API server ends each watch at some time: the next one
// begins with the objects that exist.
func (p *population) follow(ctx context.Context, list client.ObjectList, events watch.Interface) {
	for ctx.Err() == nil {
		for event := range events.ResultChan() {
			p.note(event)
		}
		events.Stop()
		again, err := p.user.Watch(ctx, list, client.InNamespace(p.namespace))
		if err == nil {
			events = again
		} else if pause(ctx, gap) != nil {
			return
		}
	}
	events.Stop()
}

func (p *population) note(event watch.Event) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch obj := event.Object.(type) {
	case *widget.Widget:
		if _, noted := p.ready[obj.Name]; noted || !isReady(obj) {
			return
		}
		p.ready[obj.Name] = now
	case *corev1.ConfigMap:
		if event.Type != watch.Added {
			return
		}
		p.created[obj.Name] = creation{obj.UID, now}
	default:
		return
	}
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

// oneLimit bounds the wait for one object, which takes some 10 milliseconds.
const oneLimit = 20 * time.Second

// await returns when done returns true. It is called after each change, with the lock held.
func (p *population) await(ctx context.Context, limit time.Duration, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		p.mu.Lock()
		ok := done()
		p.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-p.changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// create creates a Widget, and returns its name when it is ready, and how long that took.
func (p *population) create(ctx context.Context) (string, time.Duration, error) {
	name := p.nextName()
	begin := time.Now()
	if err := p.user.Create(ctx, newWidget(p.namespace, name)); err != nil {
		return "", 0, fmt.Errorf("creating a Widget: %w", err)
	}
	var at time.Time
	err := p.await(ctx, oneLimit, "a Widget to be ready", func() bool {
		at = p.ready[name]
		return !at.IsZero()
	})
	return name, at.Sub(begin), err
}

// createAtOnce creates Widgets as fast as the API server takes them, and returns when all are ready,
// with the time from the first creation.
func (p *population) createAtOnce(ctx context.Context, n int) (time.Duration, error) {
	const clients = 20
	names := make(chan string, n)
	all := make([]string, n)
	for i := range all {
		all[i] = p.nextName()
		names <- all[i]
	}
	close(names)
	errs := make(chan error, clients)
	begin := time.Now()
	for range clients {
		go func() {
			for name := range names {
				if err := p.user.Create(ctx, newWidget(p.namespace, name)); err != nil {
					errs <- fmt.Errorf("creating a Widget: %w", err)
					return
				}
			}
			errs <- nil
		}()
	}
	for range clients {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	var last time.Time
	missing := 0
	err := p.await(ctx, oneLimit+time.Duration(n)*100*time.Millisecond, fmt.Sprintf("%d Widgets to be ready", n), func() bool {
		missing = 0
		for _, name := range all {
			at, ready := p.ready[name]
			if !ready {
				missing++
			}
			if at.After(last) {
				last = at
			}
		}
		return missing == 0
	})
	if err != nil {
		err = fmt.Errorf("%d are not: %w", missing, err)
	}
	return last.Sub(begin), err
}

func (p *population) nextName() string {
	p.made++
	return nameOf(p.made)
}

// nameOf returns the name of the nth Widget.
func nameOf(n int) string { return fmt.Sprintf("w%05d", n) }

// repair deletes the ConfigMap of a Widget, and returns how long it takes until there is another.
func (p *population) repair(ctx context.Context, name string) (time.Duration, error) {
	p.mu.Lock()
	before := p.created[name].uid
	p.mu.Unlock()
	begin := time.Now()
	if err := p.user.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: name}}); err != nil {
		return 0, fmt.Errorf("deleting a ConfigMap: %w", err)
	}
	var again creation
	err := p.await(ctx, oneLimit, "a ConfigMap to exist again", func() bool {
		again = p.created[name]
		return again.uid != before
	})
	return again.at.Sub(begin), err
}

// check returns an error unless a Widget has converged: it is ready, and its children are as they
// should be and its own.
func (p *population) check(ctx context.Context, name string) error {
	key := client.ObjectKey{Namespace: p.namespace, Name: name}
	var w widget.Widget
	var configMap corev1.ConfigMap
	var secret corev1.Secret
	var service corev1.Service
	for _, obj := range []client.Object{&w, &configMap, &secret, &service} {
		if err := p.user.Get(ctx, key, obj); err != nil {
			return fmt.Errorf("converged: %w", err)
		}
	}
	for _, child := range []client.Object{&configMap, &secret, &service} {
		if !metav1.IsControlledBy(child, &w) {
			return fmt.Errorf("converged: a %T has no controller", child)
		}
	}
	switch {
	case !isReady(&w) || len(w.Finalizers) != 1:
		return fmt.Errorf("converged: the Widget has the finalizers %v and the status %+v", w.Finalizers, w.Status)
	case configMap.Data["text"] != w.Spec.First || string(secret.Data["password"]) != w.Spec.Second || service.Spec.Selector["app"] != w.Spec.Third:
		return fmt.Errorf("converged: the children have %v, %d bytes and %v", configMap.Data, len(secret.Data["password"]), service.Spec.Selector)
	}
	return nil
}
