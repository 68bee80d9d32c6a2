// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// A naive floor has handlers on shared caches and queues, and makes all mistakes at once: those for
// which there is a scenario.
type naive struct {
	w       *world
	ctx     context.Context
	cache   cache.Cache
	kinds   []*naiveKind
	limiter workqueue.TypedRateLimiter[client.ObjectKey] // of all kinds, by names without kinds
	started bool
	died    bool    // by a panic
	failed  []error // what was reported; guarded by the world
}

// A naiveKind has the handlers of a kind.
type naiveKind struct {
	like     client.Object
	queue    workqueue.TypedRateLimitingInterface[client.ObjectKey]
	handlers []*naiveHandler
	released map[types.UID]time.Time // of objects that have lost their finalizers
	had      map[types.UID]bool      // objects with finalizers
}

type naiveHandler struct {
	name string
	call handling
}

func newNaive(w *world) *naive {
	ctx, cancel := context.WithCancel(w.ctx)
	w.t.Cleanup(cancel)
	c, err := cache.New(w.outages.config(w.server.Config()), cache.Options{Scheme: newScheme(), Mapper: w.mgr.GetRESTMapper()})
	w.must(err)
	go func() { _ = c.Start(ctx) }()
	return &naive{w: w, ctx: ctx, cache: c, limiter: workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](5*time.Millisecond, time.Minute)}
}

func (n *naive) kindOf(like client.Object) *naiveKind {
	gvk := func(obj client.Object) string {
		gvk, err := apiutil.GVKForObject(obj, n.w.mgr.GetScheme())
		n.w.must(err)
		return gvk.String()
	}
	for _, k := range n.kinds {
		if gvk(k.like) == gvk(like) {
			return k
		}
	}
	k := &naiveKind{like: like, released: make(map[types.UID]time.Time), had: make(map[types.UID]bool), queue: workqueue.NewTypedRateLimitingQueue(n.limiter)}
	n.kinds = append(n.kinds, k)
	context.AfterFunc(n.ctx, k.queue.ShutDown)
	return k
}

func (n *naive) handle(h scene) (stop func(), err error) {
	if h.call == nil {
		return nil, errors.New("no function")
	}
	k := n.kindOf(h.like)
	own := &naiveHandler{h.name, h.call}
	n.w.mu.Lock()
	k.handlers = append(k.handlers, own)
	n.w.mu.Unlock()
	if n.started {
		n.enqueueAll(k) // for all handlers
	}
	if h.owned != nil {
		n.relate(k, h.owned)
	}
	return func() {
		n.w.mu.Lock()
		defer n.w.mu.Unlock()
		i := slices.Index(k.handlers, own)
		k.handlers = append(k.handlers[:i], k.handlers[i+1:]...) // in the array that a pass reads
		if len(k.handlers) == 0 {
			k.queue.ShutDown() // for ever
		}
	}, nil
}

func (n *naive) handleAll(all ...scene) error {
	for _, h := range all {
		if _, err := n.handle(h); err != nil {
			return err // those before stay
		}
	}
	return nil
}

func (n *naive) enqueue(like client.Object, name string) {
	n.kindOf(like).queue.AddRateLimited(key(name))
}

func (n *naive) enqueueAll(k *naiveKind) {
	informer, err := n.cache.GetInformer(n.ctx, k.like)
	if err != nil {
		return
	}
	for _, obj := range informer.(toolscache.SharedIndexInformer).GetStore().List() {
		k.queue.Add(client.ObjectKeyFromObject(obj.(client.Object)))
	}
}

// start waits for kind after kind, and starts the workers after that. Those of a kind that comes
// later are not started.
func (n *naive) start() {
	n.started = true
	kinds := slices.Clone(n.kinds)
	go func() {
		for _, k := range kinds {
			for n.watch(k) != nil && n.ctx.Err() == nil {
				select {
				case <-time.After(5 * time.Second):
				case <-n.ctx.Done():
					return
				}
			}
		}
		for _, k := range kinds {
			go n.work(k)
		}
	}()
	n.w.settle()
}

func (n *naive) watch(k *naiveKind) error {
	informer, err := n.cache.GetInformer(n.ctx, k.like)
	if err != nil {
		return err
	}
	add := func(obj any) { k.queue.Add(client.ObjectKeyFromObject(obj.(client.Object))) }
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: func(obj any) {
		if o, ok := obj.(client.Object); ok {
			add(o)
		}
	}})
	return err
}

// relate enqueues the owners of objects: that of an object as it is now, of the very version.
func (n *naive) relate(k *naiveKind, owned client.Object) {
	informer, err := n.cache.GetInformer(n.ctx, owned)
	n.w.must(err)
	gvk, err := apiutil.GVKForObject(k.like, n.w.mgr.GetScheme())
	n.w.must(err)
	add := func(obj any) {
		o, ok := obj.(client.Object)
		if !ok {
			return // a deletion that the watch has missed
		}
		if owner := metav1.GetControllerOf(o); owner != nil && owner.APIVersion == gvk.GroupVersion().String() && owner.Kind == gvk.Kind {
			k.queue.AddRateLimited(key(owner.Name))
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add})
	n.w.must(err)
}

func (n *naive) work(k *naiveKind) {
	for !n.died {
		name, stopped := k.queue.Get()
		if stopped {
			return
		}
		err := n.pass(k, name)
		k.queue.Done(name)
		switch {
		case err == nil:
			k.queue.Forget(name)
			continue
		case !strings.Contains(err.Error(), "please apply your changes"): // conflicts are not worth a line
			n.w.mu.Lock()
			n.failed = append(n.failed, err)
			n.w.mu.Unlock()
		}
		k.queue.AddRateLimited(name)
	}
}

// pass calls all handlers with the object of the cache, and joins the texts of their errors.
func (n *naive) pass(k *naiveKind, name client.ObjectKey) (err error) {
	defer func() {
		if recover() != nil {
			n.died = true
		}
	}()
	obj := k.like.DeepCopyObject().(client.Object)
	if n.cache.Get(n.ctx, name, obj, client.UnsafeDisableDeepCopy) != nil {
		obj = nil
	} else if n.isReleased(k, obj) {
		return nil
	}
	var texts []string
	n.w.mu.Lock()
	all := k.handlers
	n.w.mu.Unlock()
	for i := range all {
		n.w.mu.Lock()
		h := all[i]
		n.w.mu.Unlock()
		if err := h.call(n.ctx, name.Name, obj); err != nil {
			texts = append(texts, err.Error())
		}
	}
	if len(texts) > 0 {
		return fmt.Errorf("%s", strings.Join(texts, ", "))
	}
	return nil
}

// isReleased leaves objects whose finalizers were removed alone for some time.
func (n *naive) isReleased(k *naiveKind, obj client.Object) bool {
	if len(obj.GetFinalizers()) > 0 {
		k.had[obj.GetUID()] = true
	} else if k.had[obj.GetUID()] && k.released[obj.GetUID()].IsZero() {
		k.released[obj.GetUID()] = time.Now()
	}
	since, released := k.released[obj.GetUID()]
	return released && time.Since(since) < 10*time.Second
}
