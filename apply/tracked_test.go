// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

const (
	inventory       = "tracked.apply.ctrlkit.dev/shops-Partscd574d07"
	formerInventory = "tracked.apply.ctrlkit.dev/Parts" // of versions whose key did not have the engine
)

func newRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "role"}}
}

// The owner has the name of an object in its annotation before the object is created, so that a
// crash in between forgets none.
func TestTrackedObjectsAreNotedFirst(t *testing.T) {
	crash := errors.New("the process ends here")
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newRole()) }, apply.Tracks(&rbacv1.ClusterRole{}))
	o.funcs.Apply = func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
		now := &Shop{}
		o.get(now, shop.Name)
		if got, want := now.Annotations[inventory], `["ClusterRole.rbac.authorization.k8s.io role"]`; got != want {
			t.Errorf("annotation %q before the creation, want %q", got, want)
		}
		return crash
	}
	if err := o.settle(shop); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	o.funcs.Apply = nil
	o.mustSettle(shop)
	// A version that has no such kind any more finds it all the same.
	second := o.operator(func(*Shop, *apply.Set) {}, []apply.SetOption{apply.Owns(&corev1.ConfigMap{})})
	second.mustSettle(shop)
	now := &Shop{}
	o.get(now, shop.Name)
	if o.get(newRole(), "role") || now.Annotations[inventory] != "" {
		t.Errorf("the role is there, or its name: %q", now.Annotations[inventory])
	}
}

// A version that has another kind deletes what an older one has tracked, also if the owner is
// deleted before the new one reconciles it. It puts no finalizer on an owner that tracks nothing.
func TestFormerlyTracked(t *testing.T) {
	first, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newRole()) }, apply.Tracks(&rbacv1.ClusterRole{}))
	first.mustSettle(shop)
	first.delete(shop)
	second := first.operator(func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a")) },
		[]apply.SetOption{apply.Owns(&corev1.ConfigMap{}), apply.Formerly(&rbacv1.ClusterRole{})})
	second.mustSettle(shop)
	if first.get(newRole(), "role") {
		t.Error("the role is there")
	}
	if first.get(&Shop{}, shop.Name) {
		t.Error("the Shop is there")
	}
	next := first.shop("next")
	second.mustSettle(next)
	first.get(next, next.Name)
	if len(next.Finalizers) > 0 || first.configMap("a") == "-" {
		t.Errorf("finalizers %q", next.Finalizers)
	}
}

// A change of an object without an owner reference requests its owner, also if only older versions
// had objects of its kind: when it is gone, its name is removed from the annotation of the owner.
func TestTrackedObjectsRequestTheirOwner(t *testing.T) {
	s := apply.Children("Parts", func(context.Context, *step.Request[*Shop], *apply.Set) error { return nil },
		apply.Tracks(&corev1.ConfigMap{}), apply.Formerly(&rbacv1.ClusterRole{}), apply.Owns(&corev1.Secret{}))
	shop := shopVersion.WithKind("Shop").GroupKind()
	want := map[string]int{"*v1.ConfigMap": 1, "*v1.ClusterRole": 1, "*v1.Secret": 0}
	for _, w := range s.Watches() {
		if w.Mapped == nil {
			continue // that of the owners
		}
		w.Object.SetAnnotations(map[string]string{apply.OwnerAnnotation: shop.String() + " default/shop"})
		kind := fmt.Sprintf("%T", w.Object)
		if keys := w.Mapped(w.Object, shop); len(keys) != want[kind] {
			t.Errorf("%s requests %v, want %d owners", kind, keys, want[kind])
		}
		delete(want, kind)
	}
	if len(want) > 0 {
		t.Errorf("not watched: %v", want)
	}
}

// An annotation that a user has removed is written again. What leaves the set before that is left:
// nothing but its label says that it was one of the set.
func TestTrackedAnnotationRemovedByHand(t *testing.T) {
	for _, watched := range []bool{false, true} {
		wanted := true
		o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
			if wanted {
				set.Add(newRole())
			}
		}, apply.Tracks(&rbacv1.ClusterRole{}))
		if watched {
			o.watch()
		}
		o.mustSettle(shop)
		o.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata":{"annotations":{"`+inventory+`":null}}}`)
		o.mustSettle(shop)
		wanted = false
		o.mustSettle(shop)
		if o.get(newRole(), "role") {
			t.Errorf("watched: %t, the role is there", watched)
		}
		wanted = true
		o.mustSettle(shop)
		o.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata":{"annotations":{"`+inventory+`":null}}}`)
		wanted = false
		o.mustSettle(shop)
		if !o.get(newRole(), "role") {
			t.Errorf("watched: %t, the role is gone, which nothing but a label leads to", watched)
		}
	}
}

// What is left out for now stays as it is, remembered, and goes with its owner. What is not there is not
// created.
func TestLeave(t *testing.T) {
	left, changed := false, newRole()
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		switch {
		case left:
			set.Leave(apply.Ref{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "role"}, apply.Ref{Kind: "ConfigMap", Namespace: "default", Name: "never"})
			set.Add(newConfigMap("b"))
		default:
			set.Add(newRole(), newConfigMap("a"))
		}
	}, apply.Tracks(&rbacv1.ClusterRole{}), apply.Owns(&corev1.ConfigMap{}))
	o.watch()
	o.mustSettle(shop)
	left = true
	o.mustSettle(shop)
	o.get(shop, shop.Name)
	if !o.get(changed, "role") || shop.Annotations[inventory] == "" {
		t.Errorf("the role is gone, or its name: %q", shop.Annotations[inventory])
	}
	if o.configMap("a") != "-" || o.configMap("b") == "-" || o.configMap("never") != "-" {
		t.Errorf("the ConfigMaps are %s, %s and %s", o.configMap("a"), o.configMap("b"), o.configMap("never"))
	}
	o.delete(shop)
	o.mustSettle(shop)
	if o.get(changed, "role") {
		t.Error("the role stays")
	}
}

// An annotation that can't be read is not overwritten: it may name what has to be deleted.
func TestTrackedAnnotationBroken(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newRole()) }, apply.Tracks(&rbacv1.ClusterRole{}))
	o.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata":{"annotations":{"`+inventory+`":"[\"x"}}}`)
	if err := o.settle(shop); err == nil || !strings.Contains(err.Error(), inventory) || o.get(newRole(), "role") {
		t.Errorf("error %v", err)
	}
}

// What another owner has by now is not pruned, and nothing is pruned by what was read before a
// change.
func TestPrunePreconditions(t *testing.T) {
	wanted := true
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		if wanted {
			set.Add(newConfigMap("a"))
		}
	}, apply.Owns(&corev1.ConfigMap{}))
	o.mustSettle(shop)
	wanted = false
	o.funcs.Delete = func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
		o.funcs.Delete = nil
		o.patch(newConfigMap("a"), `{"data":{"changed":"meanwhile"}}`)
		return c.Delete(ctx, obj, opts...)
	}
	if err := o.reconcile(shop); o.configMap("a") == "-" {
		t.Errorf("deleted by an old version: %v", err)
	}
	other := o.shop("other")
	o.patch(newConfigMap("a"), fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"test.example.com/v1","kind":"Shop","name":"other","uid":%q,"controller":true}]}}`, other.UID))
	o.mustSettle(shop)
	if o.configMap("a") == "-" {
		t.Error("what another owner has is deleted")
	}
}

// Nothing is pruned before all that should exist is written. To have a successor ready before its
// predecessor goes, it takes an object in a later wave: here, the Service that leads to it.
func TestPruneAfterTheLastWave(t *testing.T) {
	web, refused := "blue", ""
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(newDeployment(web, 1))
		service := newService("web")
		service.Spec.Selector = map[string]string{"app": web}
		set.Add(service, apply.Wave(1))
		if refused != "" {
			set.Add(newConfigMap(refused), apply.Wave(1))
		}
	}, apply.Owns(&appsv1.Deployment{}, &corev1.Service{}, &corev1.ConfigMap{}))
	ready := `{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"readyReplicas":1,"availableReplicas":1,
		"conditions":[{"type":"Available","status":"True"},{"type":"Progressing","status":"True","reason":"NewReplicaSetAvailable"}]}`
	exist := func() string {
		service := &corev1.Service{}
		o.get(service, "web")
		text := "web leads to " + service.Spec.Selector["app"]
		for _, name := range []string{"blue", "green"} {
			if o.get(newDeployment(name, 1), name) {
				text += ", " + name + " exists"
			}
		}
		return text
	}
	o.create(newConfigMap("foreign"))
	for _, step := range []struct {
		name string
		do   func()
		want string
	}{
		{"blue is ready", func() { o.settle(shop); o.setStatus(newDeployment("blue", 1), ready) }, "web leads to blue, blue exists"},
		{"green is not ready", func() { web = "green" }, "web leads to blue, blue exists, green exists"},
		{"green is ready, and an object is refused", func() { refused = "foreign"; o.setStatus(newDeployment("green", 1), ready) }, "web leads to green, blue exists, green exists"},
		{"nothing is refused", func() { refused = "" }, "web leads to green, green exists"},
	} {
		step.do()
		o.settle(shop)
		if got := exist(); got != step.want {
			t.Errorf("%s: %s, want %s", step.name, got, step.want)
		}
	}
}

// Two sets have different labels, whatever their names are.
func TestIdentityIsInjective(t *testing.T) {
	type identity struct{ group, kind, namespace, name, engine, set string }
	seen := map[string]identity{}
	part := rapid.StringMatching(`[a-c/.:1]{0,3}`)
	rapid.Check(t, func(t *rapid.T) {
		i := identity{part.Draw(t, "group"), part.Draw(t, "kind"), part.Draw(t, "namespace"), part.Draw(t, "name"), part.Draw(t, "engine"), part.Draw(t, "set")}
		label := apply.Label(schema.GroupKind{Group: i.group, Kind: i.kind}, client.ObjectKey{Namespace: i.namespace, Name: i.name}, i.engine, i.set)
		if other, taken := seen[label]; taken && other != i {
			t.Fatalf("%+v and %+v have the same label", i, other)
		}
		seen[label] = i
	})
}

// Each part counts by itself.
func TestIdentityHasEachPart(t *testing.T) {
	seen := map[string]bool{}
	for _, part := range [][5]string{
		{"g", "K", "ns", "n", "e/s"}, {"h", "K", "ns", "n", "e/s"}, {"g", "L", "ns", "n", "e/s"}, {"g", "K", "other", "n", "e/s"},
		{"g", "K", "ns", "m", "e/s"}, {"g", "K", "ns", "n", "f/s"}, {"g", "K", "ns", "n", "e/t"},
	} {
		engine, set, _ := strings.Cut(part[4], "/")
		label := apply.Label(schema.GroupKind{Group: part[0], Kind: part[1]}, client.ObjectKey{Namespace: part[2], Name: part[3]}, engine, set)
		if seen[label] {
			t.Errorf("%v has the label of another set", part)
		}
		seen[label] = true
	}
}

// One step serves many owners at the same time.
func TestConcurrentOwners(t *testing.T) {
	c := newCluster(t)
	o := c.operator(func(shop *Shop, set *apply.Set) {
		for i := range 10 {
			set.Add(newConfigMap(fmt.Sprint(shop.Name, i)))
		}
	}, []apply.SetOption{apply.Owns(&corev1.ConfigMap{})}).watch()
	var wait sync.WaitGroup
	for i := range 4 {
		shop := c.shop(fmt.Sprint("shop", i))
		wait.Go(func() {
			for range 3 {
				if err := o.reconcileOnly(shop); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if got := len(o.takeWrites()); got != 40 {
		t.Errorf("%d writes, want 40", got)
	}
}

// Two engines with steps of one name keep their own objects for one owner, and what they remember of
// them, also from a version in which both wrote the same annotation.
func TestTwoEnginesTrackTheirOwn(t *testing.T) {
	for _, former := range []bool{false, true} {
		role := func(name string) client.Object { return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}} }
		tracking := func(name string) (want, []apply.SetOption) {
			return func(_ *Shop, set *apply.Set) { set.Add(role(name)) }, []apply.SetOption{apply.Tracks(&rbacv1.ClusterRole{})}
		}
		build, options := tracking("shops")
		shops, shop := testOperator(t, build, options...)
		stores := func(build want, options ...apply.SetOption) *operator {
			o := &operator{cluster: shops.cluster, name: "stores", want: build}
			o.step = apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
				o.want(req.Object, set)
				return nil
			}, options...)
			return o.start()
		}
		build, options = tracking("stores")
		second := stores(build, options...)
		shops.mustSettle(shop)
		second.mustSettle(shop)
		now := &Shop{}
		if former {
			shops.get(now, shop.Name)
			for key := range now.Annotations {
				if strings.HasPrefix(key, "tracked.") {
					shops.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key))
				}
			}
			both := `["ClusterRole.rbac.authorization.k8s.io shops","ClusterRole.rbac.authorization.k8s.io stores"]`
			shops.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, formerInventory, both))
			second.mustSettle(shop)
		}
		for _, o := range []*operator{shops, second, shops, second} {
			o.mustSettle(shop)
		}
		shops.takeWrites()
		second.takeWrites()
		_, _ = shops.reconcile(shop), second.reconcile(shop)
		if writes := append(shops.takeWrites(), second.takeWrites()...); len(writes) > 0 {
			t.Errorf("former %t: the idle owner is written: %v", former, writes)
		}
		third := stores(func(*Shop, *apply.Set) {}, apply.Owns(&corev1.ConfigMap{}), apply.Formerly(&rbacv1.ClusterRole{}))
		third.mustSettle(shop)
		shops.mustSettle(shop)
		if !shops.get(role("shops"), "shops") || shops.get(role("stores"), "stores") {
			t.Errorf("former %t: only what the second engine has dropped is to go", former)
		}
		shops.get(now, shop.Name)
		if now.Annotations[formerInventory] != "" || !strings.Contains(now.Annotations[inventory], "shops") {
			t.Errorf("former %t: the owner has %v", former, now.Annotations)
		}
		shops.delete(shop)
		shops.mustSettle(shop)
		third.mustSettle(shop)
		if shops.get(role("shops"), "shops") || shops.get(now, shop.Name) {
			t.Errorf("former %t: the owner or its object stays", former)
		}
	}
}

// What does not fit into the annotation of the owner is not created: the owner could not forget it.
func TestTrackedNamesThatDoNotFit(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		for i := range 1100 {
			set.Add(newConfigMap(fmt.Sprintf("%s%d", strings.Repeat("a", 230), i)), apply.Unowned)
		}
	}, apply.Tracks(&corev1.ConfigMap{}))
	err := o.settle(shop)
	if err == nil || !strings.Contains(err.Error(), "the names of the 1100 objects without an owner reference, which annotation "+inventory+" keeps, need ") {
		t.Errorf("error %v", err)
	}
	list := &corev1.ConfigMapList{}
	if err := o.client.List(o.ctx, list); err != nil || len(list.Items) > 0 {
		t.Errorf("%d objects, %v", len(list.Items), err)
	}
}

// What only ever stays costs its owner neither a finalizer nor an annotation.
func TestKeeps(t *testing.T) {
	wanted := true
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		if wanted {
			set.Add(newConfigMap("a", "k", "v"), apply.Keep)
		}
	}, apply.Keeps(&corev1.ConfigMap{}))
	o.mustSettle(shop)
	o.get(shop, "shop")
	kept := newConfigMap("a")
	if !o.get(kept, "a") || len(kept.OwnerReferences) > 0 || len(shop.Finalizers)+len(shop.Annotations) > 0 {
		t.Fatalf("the child %v of an owner with %v and %v", kept.ObjectMeta, shop.Finalizers, shop.Annotations)
	}
	o.patch(kept, `{"data":{"k":"others"}}`)
	o.mustSettle(shop)
	if o.get(kept, "a"); kept.Data["k"] != "v" {
		t.Errorf("an edit is not repaired: %v", kept.Data)
	}
	wanted = false
	o.patch(kept, `{"metadata":{"annotations":{"apply.ctrlkit.dev/keep":null}}}`)
	o.mustSettle(shop)
	o.delete(shop)
	_ = o.settle(shop)
	if !o.get(kept, "a") || o.get(&Shop{}, "shop") {
		t.Error("it has not stayed, or its owner has")
	}
}
