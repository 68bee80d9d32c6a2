// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Targets are ConfigMaps here, which select a Secret of their namespace by the name that they have
// as data.
func selectSecret(target *corev1.ConfigMap) (Selection, error) {
	if target.Data["secret"] == "" {
		return Selection{}, errors.New("no secret")
	}
	return Selection{Namespace: target.Namespace, Name: target.Data["secret"]}, nil
}

func offerSecret(obj *corev1.Secret) Selection {
	return Selection{Namespace: obj.Namespace, Name: obj.Name}
}

var bySecret = TargetIndex("ctrlkit:v1/Secret", selectSecret)

func selecting(namespace, name, secret string) *corev1.ConfigMap {
	target := configMap(namespace, name, nil)
	target.Data = map[string]string{"secret": secret}
	return target
}

func secretNamed(namespace, name string) *corev1.Secret {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = namespace, name
	return secret
}

// enqueued returns what a handler adds to a queue for an event in which an object changes from one
// state to another.
func enqueued(t *testing.T, reader client.Reader, from, to client.Object) []string {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	Enqueue(reader, &corev1.ConfigMapList{}, bySecret, offerSecret).
		Update(t.Context(), event.UpdateEvent{ObjectOld: from, ObjectNew: to}, queue)
	var requests []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		requests = append(requests, request.String())
	}
	slices.Sort(requests)
	return requests
}

func targets() *fake.ClientBuilder {
	return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		selecting("ns", "a", "one"), selecting("ns", "b", "one"), selecting("ns", "c", "two"),
		selecting("other", "d", "one"), selecting("ns", "e", ""),
	)
}

func indexed() client.Reader {
	return targets().WithIndex(&corev1.ConfigMap{}, bySecret.Name, func(obj client.Object) []string {
		return bySecret.Values(obj.(*corev1.ConfigMap))
	}).Build()
}

func TestEnqueue(t *testing.T) {
	tests := map[string]struct {
		from, to client.Object
		want     []string
	}{
		"selected by two":  {from: secretNamed("ns", "one"), to: secretNamed("ns", "one"), want: []string{"ns/a", "ns/b"}},
		"selected by none": {from: secretNamed("ns", "three"), to: secretNamed("ns", "three")},
		"before and after": {from: secretNamed("ns", "two"), to: secretNamed("other", "one"), want: []string{"ns/c", "other/d"}},
		"another kind":     {from: configMap("ns", "one", nil), to: configMap("ns", "one", nil)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			same(t, "enqueued", test.want, enqueued(t, indexed(), test.from, test.to))
		})
	}
}

// TestNameIndex checks that a target is also found for an object of the name that does not satisfy
// its other selectors.
func TestNameIndex(t *testing.T) {
	index := NameIndex("ctrlkit:v1/Secret", func(target *corev1.ConfigMap) (Selection, error) {
		selection, err := selectSecret(target)
		selection.Labels = map[string]string{"app": target.Name}
		return selection, err
	})
	want := []string{offerSecret(secretNamed("ns", "one")).Key()}
	same(t, "values", want, index.Values(selecting("ns", "a", "one")))
	if got := index.Values(selecting("ns", "e", "")); got != nil {
		t.Errorf("a target that selects nothing is found by %q", got)
	}
}

func TestEnqueueWithoutIndexEnqueuesAll(t *testing.T) {
	want := []string{"ns/a", "ns/b", "ns/c", "ns/e", "other/d"}
	same(t, "enqueued", want, enqueued(t, targets().Build(), secretNamed("ns", "one"), secretNamed("ns", "one")))
}

// broken is a reader that cannot read.
type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("down")
}

func TestEnqueueSurvivesABrokenReader(t *testing.T) {
	if got := enqueued(t, broken{}, secretNamed("ns", "one"), secretNamed("ns", "one")); got != nil {
		t.Errorf("enqueued %v", got)
	}
}

// The targets of a changed object are those that select its controlling owner. Another owner, one
// of another kind or group, and one that is not there select nothing.
func TestThroughOwner(t *testing.T) {
	find := ThroughOwner(indexed(), &corev1.ConfigMap{}, "", "ConfigMap", func(_ context.Context, obj client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
	})
	for name, test := range map[string]struct {
		owner metav1.OwnerReference
		want  []string
	}{
		"controller":      {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Controller: new(true)}, []string{"ns/a"}},
		"owner only":      {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}, nil},
		"another kind":    {metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "a", Controller: new(true)}, nil},
		"another group":   {metav1.OwnerReference{APIVersion: "x/v1", Kind: "ConfigMap", Name: "a", Controller: new(true)}, nil},
		"not there":       {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "z", Controller: new(true)}, nil},
		"other namespace": {metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "d", Controller: new(true)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			obj := secretNamed("ns", "s")
			obj.SetOwnerReferences([]metav1.OwnerReference{test.owner})
			var got []string
			for _, request := range find(t.Context(), obj) {
				got = append(got, request.String())
			}
			same(t, "enqueued", test.want, got)
		})
	}
}
