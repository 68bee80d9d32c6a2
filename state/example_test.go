// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/state"
)

// shop is the target of the examples.
var shop = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
	Namespace: "shops", Name: "shop", UID: "uid-of-the-shop",
}}

func secret(name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: name, Labels: labels},
		Type:       corev1.SecretTypeOpaque,
	}
}

// owned makes shop an owner of obj, controlled its controlling owner.
func owned(obj *corev1.Secret) *corev1.Secret {
	if err := controllerutil.SetOwnerReference(shop, obj, scheme.Scheme); err != nil {
		panic(err)
	}
	return obj
}

func controlled(obj *corev1.Secret) *corev1.Secret {
	if err := controllerutil.SetControllerReference(shop, obj, scheme.Scheme); err != nil {
		panic(err)
	}
	return obj
}

func printNames(items []corev1.Secret) {
	var names []string
	for i := range items {
		names = append(names, items[i].Name)
	}
	fmt.Println(strings.Join(names, " "))
}

// A state that is a single object with a known name and label.
func ExampleGet() {
	c := fake.NewClientBuilder().WithObjects(secret("password", map[string]string{"shop": "other"})).Build()
	selection := state.Selection{Namespace: "shops", Name: "password"}

	obj, err := state.Get(context.Background(), c, selection, &corev1.Secret{})
	fmt.Println(obj.GetName(), err)

	selection.Labels = map[string]string{"shop": "shop"}
	_, err = state.Get(context.Background(), c, selection, &corev1.Secret{})
	var mismatch *state.MismatchError
	if errors.As(err, &mismatch) {
		fmt.Println(mismatch.Object, mismatch.Mismatches)
	}

	selection.Name = "absent"
	obj, err = state.Get(context.Background(), c, selection, &corev1.Secret{})
	fmt.Println(obj == nil, err)
	// Output:
	// password <nil>
	// shops/password [label shop is "other", not "shop"]
	// true <nil>
}

// A list state that names its only object: an object that does not match is left out.
func ExampleGetList() {
	c := fake.NewClientBuilder().WithObjects(secret("password", map[string]string{"shop": "other"})).Build()
	for _, value := range []string{"other", "shop"} {
		items, err := state.GetList(context.Background(), c, state.Selection{
			Namespace: "shops", Name: "password", Labels: map[string]string{"shop": value},
		}, &corev1.Secret{})
		fmt.Println(len(items), err)
	}
	// Output:
	// 1 <nil>
	// 0 <nil>
}

// The body of a generated getter: list by a label, keep what the target controls, and sort.
func ExampleSelection_List() {
	labels := map[string]string{"shop": "shop"}
	c := fake.NewClientBuilder().WithObjects(
		controlled(secret("b", labels)), controlled(secret("a", labels)),
		controlled(secret("unlabelled", nil)), secret("not-owned", labels),
	).Build()

	namespace, err := state.NamespaceOf(shop)
	if err != nil {
		fmt.Println(err)
		return
	}
	selection := state.Selection{Namespace: namespace, Labels: labels}
	var list corev1.SecretList
	if err := selection.List(context.Background(), state.Uncopied(c), &list); err != nil {
		fmt.Println(err)
		return
	}
	printNames(state.Sorted(state.ControlledBy(shop, list.Items)))
	// Output: a b
}

func ExampleControlledBy() {
	items := []corev1.Secret{
		*controlled(secret("controlled", nil)),
		*owned(secret("owned", nil)),
		*secret("neither", nil),
	}
	printNames(state.OwnedBy(shop, state.Copies(items)))
	printNames(state.ControlledBy(shop, items))
	// Output:
	// controlled owned
	// controlled
}

// A single object that the target must own, so that it never changes the object of another owner.
func ExampleCheckOwner() {
	obj, err := state.CheckOwner(shop, owned(secret("ours", nil)))
	fmt.Println(obj.GetName(), err)

	_, err = state.CheckOwner(shop, secret("stray", nil))
	fmt.Println(err)
	// Output:
	// ours <nil>
	// shops/stray is not owned by shops/shop: it has no owner: delete it, or make the target an owner
}

// The controlling owner is the one that deletes and replaces an object.
func ExampleCheckController() {
	_, err := state.CheckController(shop, owned(secret("shared", nil)))
	var notOwned *state.NotOwnedError
	if errors.As(err, &notOwned) {
		fmt.Printf("%s: controller %q, owners %q\n", notOwned.Object, notOwned.Controller, notOwned.Owners)
	}
	// Output: shops/shared: controller "", owners ["ConfigMap shop"]
}

// A state that is a single object, selected without its name.
func ExampleOnly() {
	items := []corev1.Secret{*secret("b", nil), *secret("a", nil)}
	obj, err := state.Only(items[:1])
	fmt.Println(obj.GetName(), err)
	_, err = state.Only(items)
	fmt.Println(err)
	// Output:
	// b <nil>
	// at most one object may match, but 2 do: shops/a, shops/b
}

func ExampleNamed() {
	items := []corev1.Secret{*secret("a", nil), *secret("b", nil)}
	printNames(state.Named("b", items))
	// Output: b
}

func ExampleSorted() {
	items := []corev1.Secret{*secret("b", nil), *secret("a", nil)}
	printNames(state.Sorted(items))
	printNames(items)
	// Output:
	// a b
	// b a
}

// Several actions of one reconcile share a state: the first one reads it.
func ExampleMemo() {
	c := fake.NewClientBuilder().WithObjects(secret("password", nil)).Build()
	var memo state.Memo[*corev1.Secret]
	read := func(ctx context.Context) (*corev1.Secret, error) {
		fmt.Println("reading")
		return state.Get(ctx, c, state.Selection{Namespace: "shops", Name: "password"}, &corev1.Secret{})
	}
	for range 2 {
		obj, err := memo.Get(context.Background(), read)
		fmt.Println(state.Copy(obj).Name, err)
	}
	// Output:
	// reading
	// password <nil>
	// password <nil>
}

// An index of Secrets by their type. A manager registers it with its FieldIndexer; here the cache
// is a fake client.
func ExampleIndex() {
	byType := state.Index[*corev1.Secret]{
		Name:   "example:.type",
		Values: func(obj *corev1.Secret) []string { return []string{string(obj.Type)} },
	}
	c := fake.NewClientBuilder().WithObjects(secret("password", nil)).
		WithIndex(&corev1.Secret{}, byType.Name, func(obj client.Object) []string { return byType.Values(obj.(*corev1.Secret)) }).
		Build()

	var list corev1.SecretList
	selection := state.Selection{Namespace: "shops", Fields: map[string]string{byType.Name: "Opaque"}}
	err := selection.List(context.Background(), c, &list)
	printNames(list.Items)
	fmt.Println(err)
	// Output:
	// password
	// <nil>
}

// credentialsOf is the selection of a target: the Secret that its data names.
func credentialsOf(target *corev1.ConfigMap) (state.Selection, error) {
	namespace, err := state.NamespaceOf(target)
	return state.Selection{Namespace: namespace, Name: target.Data["credentials"]}, err
}

// byCredentials finds the targets that select a Secret by its name.
var byCredentials = state.NameIndex("example:credentials", credentialsOf)

// A changed Secret enqueues the ConfigMaps that name it. A builder takes the handler as
//
//	b.Watches(&corev1.Secret{}, handler)
func ExampleEnqueue() {
	target := shop.DeepCopy()
	target.Data = map[string]string{"credentials": "password"}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "other"}}
	cache := fake.NewClientBuilder().WithObjects(target, other).
		WithIndex(&corev1.ConfigMap{}, byCredentials.Name, func(obj client.Object) []string {
			return byCredentials.Values(obj.(*corev1.ConfigMap))
		}).
		Build()
	handler := state.Enqueue(cache, &corev1.ConfigMapList{}, byCredentials, func(obj *corev1.Secret) state.Selection {
		return state.Selection{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	})

	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	handler.Create(context.Background(), event.CreateEvent{Object: secret("password", nil)}, queue)
	handler.Create(context.Background(), event.CreateEvent{Object: secret("unrelated", nil)}, queue)
	request, _ := queue.Get()
	fmt.Println(request, queue.Len())
	// Output: shops/shop 0
}

// Targets of which each selects Secrets by a label with its name.
func ExampleTargetIndex() {
	byLabel := state.TargetIndex("example:shop-label", func(target *corev1.ConfigMap) (state.Selection, error) {
		namespace, err := state.NamespaceOf(target)
		return state.Selection{Namespace: namespace, Labels: map[string]string{"shop": target.Name}}, err
	})
	changed := secret("password", map[string]string{"shop": "shop"})
	offer := state.Selection{Namespace: changed.Namespace, Labels: map[string]string{"shop": changed.Labels["shop"]}}
	fmt.Println(byLabel.Value(shop) == offer.Key())
	// Output: true
}
