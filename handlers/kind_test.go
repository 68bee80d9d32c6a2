// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// readCache is a cache whose reads are a function.
type readCache struct {
	cache.Cache
	get func(obj client.Object)
}

// Get implements [client.Reader].
func (c readCache) Get(_ context.Context, _ client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	c.get(obj)
	return nil
}

// aliveInformer is an informer that is never asked.
type aliveInformer struct{ cache.Informer }

// A handler is called for a change that arrives after the object was read.
func TestAChangeDuringAReadIsNotLost(t *testing.T) {
	name := client.ObjectKey{Namespace: "default", Name: "a"}
	var k *kind
	version := 1
	reads := readCache{get: func(obj client.Object) {
		obj.SetResourceVersion(fmt.Sprint(version))
		if version == 1 {
			version = 2
			k.due.mark(name, reasonChange)
		}
	}}
	r := &Registry{options: Options{Name: "test"}, scheme: scheme.Scheme}
	var seen []string
	e, err := Handler[*corev1.ConfigMap]{Name: "one", OnChange: func(_ context.Context, obj *corev1.ConfigMap) (ctrl.Result, error) {
		seen = append(seen, obj.ResourceVersion)
		return ctrl.Result{}, nil
	}}.prepare(r)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{key: e.kind, object: e.object, cache: &countingCache{Cache: reads, scheme: scheme.Scheme}, informer: aliveInformer{}, state: StateRunning}
	k = newKind(r, e.kind, f)
	k.handlers.Store(&[]*entry{e})
	k.due.mark(name, reasonChange)
	for range 2 { // the queue has the name again
		if _, err := k.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"1", "2"}, seen); diff != "" {
		t.Errorf("versions that the handler has seen (-want +got):\n%s", diff)
	}
}
