// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A repeated object calls the handlers with an engine that ask for it, and no other ones.
func TestResyncOfHandlersWithAnEngine(t *testing.T) {
	r := &Registry{options: Options{Name: "test"}, scheme: scheme.Scheme, base: fake.NewClientBuilder().Build()}
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", ResourceVersion: "1"}}
	var all []*entry
	for name, resync := range map[string]bool{"wants": true, "does not": false} {
		e, err := Handler[*corev1.ConfigMap]{
			Name: name, Finalizer: "example.com/a", Resync: resync,
			OnRemove: func(context.Context, *corev1.ConfigMap) (ctrl.Result, error) { return ctrl.Result{}, nil },
		}.prepare(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	k := newKind(r, all[0].kind, &feed{key: all[0].kind, object: all[0].object, state: StateRunning})
	k.handlers.Store(&all)
	kindEvents{k}.Update(event.UpdateEvent{ObjectOld: obj, ObjectNew: obj})
	p := &pass{kind: k, object: obj, due: k.due.take(client.ObjectKeyFromObject(obj), time.Now()), readable: true}
	for _, e := range all {
		if got, _ := p.wants(t.Context(), e); got != (e.name == "wants") {
			t.Errorf("handler %q is called: %t", e.name, got)
		}
	}
}
