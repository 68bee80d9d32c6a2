// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/bench/process"
)

// cachedObjects are namespaces for processes with many handlers of ConfigMaps. All rivals have the
// same ones, which do not change.
type cachedObjects struct {
	empty, full string // namespaces, empty strings until they are needed
}

// handlers is the part of a round in which many objects of a kind are cached for handlers that do
// nothing.
func (t turn) handlers(ctx context.Context) error {
	if !t.rival.handlers {
		return nil
	}
	if err := t.createCached(ctx); err != nil {
		return err
	}
	for _, handlers := range []int{1, 20} {
		without, err := t.heapWith(ctx, t.configs.empty, handlers, 0)
		if err != nil {
			return err
		}
		with, err := t.heapWith(ctx, t.configs.full, handlers, t.cached)
		if err != nil {
			return err
		}
		each := (with - without) / float64(t.cached) / 1000
		t.add(rowHeapHandlers+fmt.Sprint(handlers), each)
		t.report("%2d handlers, %d cached objects: heap %.2f MB, %.2f without objects, %.2f kB each", handlers, t.cached, with/1e6, without/1e6, each)
	}
	return nil
}

// createCached creates the namespaces and their ConfigMaps, once.
func (t turn) createCached(ctx context.Context) error {
	if t.configs.full != "" {
		return nil
	}
	empty, err := t.namespace(ctx, false)
	if err != nil {
		return err
	}
	full, err := t.namespace(ctx, false)
	if err != nil {
		return err
	}
	t.report("creating %d ConfigMaps", t.cached)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(20) // as createAtOnce
	for i := range t.cached {
		group.Go(func() error { return t.user.Create(ctx, newCached(full, i)) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("creating the ConfigMaps that are cached: %w", err)
	}
	t.configs = cachedObjects{empty, full}
	return nil
}

// newCached returns a ConfigMap of some 200 bytes and a label.
func newCached(namespace string, i int) *corev1.ConfigMap {
	name := fmt.Sprintf("cached-%06d", i)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Data:       map[string]string{"text": strings.Repeat(name+" ", 15)},
	}
}

// heapWith returns the heap, in bytes, of a process with as many handlers, each of which has seen all
// objects of a namespace.
func (t turn) heapWith(ctx context.Context, namespace string, handlers, objects int) (float64, error) {
	operator, err := t.cluster.run(ctx, t.rival, process.Settings{Namespace: namespace, Workers: 10, Handlers: handlers, Profiled: t.profiles != ""})
	if err != nil {
		return 0, err
	}
	// A library that reconciles an object once for all handlers does not count them.
	_, err = operator.Await(ctx, "all cached objects to be handled", func(s process.Stats) bool { return s.Reconciles >= objects })
	if err == nil {
		_, err = operator.AwaitIdle(ctx, quiet)
	}
	var stats process.Stats
	if err == nil {
		stats, err = operator.Heap()
		if t.profiles != "" && objects > 0 {
			err = errors.Join(err, operator.HeapProfile(t.profileOf(fmt.Sprintf("handlers-%d", handlers))))
		}
	}
	return float64(stats.Heap), errors.Join(err, operator.Stop())
}
