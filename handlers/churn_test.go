// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var churnObjects = flag.Int("churn-objects", 500, "the objects of TestChurn")

// A churning handler counts its calls by object and resource version.
type churning struct {
	registration *handlers.Registration

	mu     sync.Mutex // for seen and counts
	seen   map[string]string
	counts map[string]int
	most   map[string]int // what is enqueued: each object once, and once for each change
}

func (w *world) churn(name string) *churning {
	c := &churning{seen: make(map[string]string), counts: make(map[string]int), most: make(map[string]int)}
	c.registration = w.register(handlers.Handler[*corev1.ConfigMap]{Name: name, OnChange: func(_ context.Context, obj *corev1.ConfigMap) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[obj.Name] = obj.ResourceVersion
		c.counts[obj.Name]++
		return nil
	}})
	return c
}

// check compares what the handler was called for with what there is.
func (c *churning) check(t *testing.T, current map[string]string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	missed := 0
	for name, version := range current {
		if c.seen[name] != version {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("%d of %d objects were missed", missed, len(current))
	}
	for name, n := range c.counts {
		if n > c.most[name]+1 {
			t.Errorf("called %d times for %s, which has changed %d times", n, name, c.most[name])
			return
		}
	}
}

// Handlers are registered, unregistered and registered again at random, while objects change: each
// change reaches each live handler, and none twice. After the last one is gone, goroutines and
// memory are as before. With all objects:
//
//	go test -race -run TestChurn ./handlers -churn-objects=10000
func TestChurn(t *testing.T) {
	rings.Test(t, "takes seconds")
	random := rand.New(rand.NewPCG(1, 2))
	silent := func(o *handlers.Options) { o.Observers = nil } // the world keeps what it observes
	inWorld(t, silent, func(w *world) {
		current := make(map[string]string, *churnObjects)
		for i := range *churnObjects {
			cm := newConfigMap(fmt.Sprint("m", i), nil)
			w.create(cm)
			current[cm.Name] = cm.ResourceVersion
		}
		w.start()
		goroutinesBefore, _ := goroutines()
		live := make(map[int]*churning)
		for range 30 {
			if i := random.IntN(5); live[i] != nil {
				w.must(live[i].registration.Stop(w.ctx))
				delete(live, i)
			} else {
				live[i] = w.churn(fmt.Sprint("h", i))
			}
			for range *churnObjects / 20 {
				cm := newConfigMap(fmt.Sprint("m", random.IntN(*churnObjects)), nil)
				w.touch(cm)
				current[cm.Name] = cm.ResourceVersion
				for _, c := range live {
					c.most[cm.Name]++
				}
			}
			time.Sleep(10 * time.Second)
			for _, c := range live {
				c.check(t, current)
			}
		}
		for i, c := range live {
			w.must(c.registration.Stop(w.ctx))
			delete(live, i)
		}
		heapBefore := heapObjects()
		for i := range 5 {
			live[i] = w.churn(fmt.Sprint("h", i))
		}
		time.Sleep(10 * time.Second)
		for i, c := range live {
			c.check(t, current)
			w.must(c.registration.Stop(w.ctx))
			delete(live, i)
		}
		time.Sleep(10 * time.Second)
		if now, stacks := goroutines(); now > goroutinesBefore {
			t.Errorf("%d goroutines, before there were %d:\n%s", now, goroutinesBefore, stacks)
		}
		// Each object in a cache or in a map of a handler would be several objects of the heap.
		if now := heapObjects(); now > heapBefore+uint64(*churnObjects) {
			t.Errorf("%d objects of the heap, before there were %d", now, heapBefore)
		}
	})
}

func heapObjects() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapObjects
}
