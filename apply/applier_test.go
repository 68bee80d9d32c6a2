// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/step"
)

var platform = client.ObjectKey{Namespace: "default", Name: "platform"}

// release returns a set with objects of these names: in the namespace of the record, in another
// one, and without one.
func release(names ...string) *apply.Set {
	var set apply.Set
	for _, name := range names {
		place, name, _ := strings.Cut(name, "/")
		meta := metav1.ObjectMeta{Name: name}
		switch place {
		case "here":
			set.Add(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}}, apply.Wave(1))
		case "there":
			meta.Namespace = "kube-system"
			set.Add(&corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"a": "1"}})
		case "role":
			set.Add(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}})
		case "kept":
			set.Add(&corev1.ConfigMap{ObjectMeta: meta}, apply.Keep)
		}
	}
	return &set
}

// released returns what is there of such sets, and their records.
func (c *cluster) released() string {
	c.t.Helper()
	var names []string
	add := func(objects ...client.Object) {
		for _, obj := range objects {
			if obj.GetLabels()[apply.SetLabel] != "" {
				names = append(names, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"))
			}
		}
	}
	maps, roles := &corev1.ConfigMapList{}, &rbacv1.ClusterRoleList{}
	if err := errors.Join(c.client.List(c.ctx, maps), c.client.List(c.ctx, roles)); err != nil {
		c.t.Fatalf("listing: %v", err)
	}
	for i := range maps.Items {
		add(&maps.Items[i])
	}
	for i := range roles.Items {
		add(&roles.Items[i])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// errCrashed answers each request of a process that has ended.
var errCrashed = errors.New("the process has ended")

// A process counts the writes of a client, and ends at one of them.
type process struct {
	crashAt int // 0: never
	after   bool
	mu      sync.Mutex // guards writes
	writes  int
}

func (p *process) of(c client.WithWatch) client.Client {
	write := func(do func() error) error {
		p.mu.Lock()
		p.writes++
		n := p.writes
		p.mu.Unlock()
		switch {
		case p.crashAt == 0 || n < p.crashAt:
			return do()
		case n == p.crashAt && p.after:
			_ = do() // what has become of it is not known
		}
		return errCrashed
	}
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error { return c.Create(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write(func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
	})
}

func TestApplier(t *testing.T) {
	c, p := newCluster(t), &process{}
	a := &apply.Applier{Client: p.of(c.client), FieldOwner: "installer"}
	expect := func(what string, want *apply.Set, writes int, world string) *apply.Status {
		t.Helper()
		p.writes = 0
		status, err := a.Apply(c.ctx, platform, want)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := c.released(); got != world || p.writes != writes {
			t.Errorf("%s: %d writes, %s; want %d, %s", what, p.writes, got, writes, world)
		}
		return status
	}
	all := "default/a default/platform kube-system/b r"
	plan, err := a.Plan(c.ctx, platform, release("here/a", "there/b", "role/r"))
	if err != nil || len(plan.Changes) != 3 || c.released() != "" {
		t.Errorf("a plan: %v %v, and there is %q", plan, err, c.released())
	}
	status := expect("a new set", release("here/a", "there/b", "role/r"), 6, all)
	if status.Lacks != "" || len(status.Objects) != 3 {
		t.Errorf("status: %+v", status)
	}
	expect("nothing has changed", release("here/a", "there/b", "role/r"), 0, all)
	a = &apply.Applier{Client: p.of(c.client), FieldOwner: "installer"}
	expect("another process", release("here/a", "there/b", "role/r"), 0, all)
	c.patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, `{"data":{"a":"2"}}`)
	expect("drift", release("here/a", "there/b", "role/r"), 1, all)
	status = expect("one has left", release("here/a", "role/r"), 1, "default/a default/platform r")
	if len(status.Pruned) != 1 || status.Pruned[0].String() != "ConfigMap kube-system/b" {
		t.Errorf("pruned: %v", status.Pruned)
	}
	expect("one is kept", release("here/a", "role/r", "kept/k"), 3, "default/a default/k default/platform r")
	for range 5 {
		waits, err := a.Delete(c.ctx, platform)
		must(t, err)
		if waits == "" {
			break
		}
	}
	if got := c.released(); got != "default/k" {
		t.Errorf("after the deletion: %s", got)
	}
	if waits, err := a.Delete(c.ctx, platform); waits != "" || err != nil {
		t.Errorf("deleted twice: %q %v", waits, err)
	}
}

// Whichever write a process ends at, before or after it, another process completes its work.
func TestApplierSurvivesCrashes(t *testing.T) {
	run := func(c *cluster, a *apply.Applier) error {
		if _, err := a.Apply(c.ctx, platform, release("here/a", "there/b", "role/r")); err != nil {
			return err
		}
		if _, err := a.Apply(c.ctx, platform, release("here/a", "there/d")); err != nil {
			return err
		}
		return remove(c, a)
	}
	for n := 1; ; n++ {
		for _, after := range []bool{false, true} {
			c, p := newCluster(t), &process{crashAt: n, after: after}
			err := run(c, &apply.Applier{Client: p.of(c.client), FieldOwner: "installer"})
			if err == nil && p.writes < n {
				if n < 12 {
					t.Errorf("only %d writes", p.writes)
				}
				return
			}
			name := fmt.Sprintf("crash at write %d, after it: %v", n, after)
			next := &apply.Applier{Client: c.client, FieldOwner: "installer"}
			if _, err := next.Apply(c.ctx, platform, release("here/a", "there/d")); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := c.released(); got != "default/a default/platform kube-system/d" {
				t.Errorf("%s: there is %s", name, got)
			}
			if err := remove(c, next); err != nil || c.released() != "" {
				t.Errorf("%s: after the deletion: %s %v", name, c.released(), err)
			}
		}
	}
}

func remove(c *cluster, a *apply.Applier) error {
	for {
		if waits, err := a.Delete(c.ctx, platform); waits == "" {
			return err
		}
	}
}

// What belongs to others stays: with the remedy that is printed, and without.
func TestApplierLeavesOthers(t *testing.T) {
	c := newCluster(t)
	mine := &apply.Applier{Client: c.client, FieldOwner: "installer"}
	theirs := &apply.Applier{Client: c.client, FieldOwner: "other"}
	shop := c.shop("shop")
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}})
	c.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
		*metav1.NewControllerRef(shop, shopVersion.WithKind("Shop"))}}})
	key := client.ObjectKey{Namespace: "default", Name: "theirs"}
	if _, err := theirs.Apply(c.ctx, key, release("here/used")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name client.ObjectKey
		want string
		says string
	}{
		{platform, "here/stranger", "has no owner"},
		{platform, "here/owned", "is controlled by Shop shop"},
		{platform, "here/used", `belongs to the set of operator "other"`},
		{platform, "here/theirs", "belongs to another set"},
		{platform, "here/platform", "the record of the set"},
		{client.ObjectKey{Namespace: "default", Name: "stranger"}, "here/a", "is not the record of this set"},
		{key, "here/a", "is not the record of this set"},
		{client.ObjectKey{Name: "cluster"}, "here/a", "a name and a namespace"},
	} {
		_, err := mine.Apply(c.ctx, tt.name, release(tt.want))
		if err == nil || !strings.Contains(err.Error(), tt.says) || failure.Classify(err).Class != failure.ClassTerminal {
			t.Errorf("%s in %s: %v", tt.want, tt.name, err)
		}
	}
	if _, err := mine.Delete(c.ctx, key); err == nil {
		t.Error("the set of another applier can be deleted")
	}
	if err := remove(c, mine); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"stranger", "owned", "used", "theirs"} {
		if !c.get(&corev1.ConfigMap{}, name) {
			t.Errorf("%s is gone", name)
		}
	}
}

// A set may have a definition and objects of its kind. A record that its objects have outgrown
// twice at once, by two processes, forgets none.
func TestApplierOfNewKinds(t *testing.T) {
	server := apiserver.New(apiserver.Options{Seed: 1})
	c := connect(t, server.Config(), "default")
	a := &apply.Applier{Client: c.client, FieldOwner: "installer"}
	var set apply.Set
	definition, err := runtime.DefaultUnstructuredConverter.ToUnstructured(shopDefinition())
	must(t, err)
	delete(definition, "status")
	definition["apiVersion"], definition["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	set.Add(&unstructured.Unstructured{Object: definition}, apply.Wave(-1))
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": shopVersion.String(), "kind": "Shop", "metadata": map[string]any{"name": "one"}, "spec": map[string]any{"size": int64(1)}}}
	set.Add(u)
	status, err := a.Apply(c.ctx, platform, &set)
	must(t, err)
	for i := 0; i < 10 && status.Lacks != ""; i++ {
		a = &apply.Applier{Client: connect(t, server.Config(), "default").client, FieldOwner: "installer"}
		if status, err = a.Apply(c.ctx, platform, &set); err != nil {
			t.Fatal(err)
		}
	}
	if status.Lacks != "" || !c.get(&Shop{}, "one") {
		t.Errorf("lacks %q", status.Lacks)
	}
	misspelled := &apply.Set{}
	misspelled.Add(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Shoop", "metadata": map[string]any{"name": "one"}}})
	if status, err = a.Apply(c.ctx, client.ObjectKey{Namespace: "default", Name: "wrong"}, misspelled); err != nil || !strings.Contains(status.Lacks, "waits for the definition of Shoop in example.com/v1") {
		t.Errorf("a misspelled kind: %v %v", status, err)
	}
}

// Two processes that apply different sets of one name at the same time: one of them fails, or all
// objects are remembered.
func TestApplierTwice(t *testing.T) {
	c := newCluster(t)
	first := &apply.Applier{Client: c.client, FieldOwner: "installer"}
	meanwhile := &apply.Applier{FieldOwner: "installer"}
	meanwhile.Client = interceptor.NewClient(c.client, interceptor.Funcs{
		Patch: func(ctx context.Context, cl client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if obj.GetName() == platform.Name && first != nil {
				a := first
				first = nil
				if _, err := a.Apply(ctx, platform, release("there/b")); err != nil {
					t.Fatal(err)
				}
			}
			return cl.Patch(ctx, obj, patch, opts...)
		},
	})
	if _, err := meanwhile.Apply(c.ctx, platform, release("here/a")); !apierrors.IsConflict(err) {
		t.Errorf("the slower one: %v", err)
	}
	if _, err := meanwhile.Apply(c.ctx, platform, release("here/a")); err != nil || c.released() != "default/a default/platform" {
		t.Errorf("it tries again: %v, %s", err, c.released())
	}
}

// A step keeps its objects in another cluster, of which a record names the owner.
func TestChildrenIn(t *testing.T) {
	target := newCluster(t)
	source := func(seed uint64) (*operator, *Shop) {
		server := apiserver.New(apiserver.Options{Seed: seed})
		must(t, server.Install(shopDefinition()))
		c := connect(t, server.Config(), "default")
		place := func(_ context.Context, req *step.Request[*Shop]) (apply.Place, error) {
			return apply.Place{Applier: &apply.Applier{Client: target.client, FieldOwner: "shops"}, Name: client.ObjectKey{Namespace: "default", Name: "shop-" + req.Object.Name}}, nil
		}
		return c.operatorOf(apply.ChildrenIn("Parts", place, func(_ context.Context, req *step.Request[*Shop], want *apply.Set) error {
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name}, Data: map[string]string{"size": fmt.Sprint(req.Object.Spec.Size)}})
			return nil
		})), c.shop("one")
	}
	o, shop := source(2)
	planned := func(want string) {
		t.Helper()
		req, err := o.engine.RequestFor(o.ctx, client.ObjectKeyFromObject(shop))
		must(t, err)
		if plan, err := apply.PlanFor(o.ctx, req, o.step); err != nil || strings.TrimSpace(plan.String()) != want {
			t.Errorf("planned: %v, error %v", plan, err)
		}
	}
	planned("create   ConfigMap default/one")
	o.mustSettle(shop)
	planned("1 unchanged")
	if got := target.released(); got != "default/one default/shop-one" {
		t.Errorf("in the other cluster: %s", got)
	}
	if got := o.condition(shop); got != "True AllReady" {
		t.Errorf("condition: %s", got)
	}
	result, err := o.engine.Reconcile(o.ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shop)})
	if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 11*time.Minute {
		t.Errorf("when all are ready: %v %v", result, err)
	}
	twin, same := source(3) // another cluster with an object of the same name
	if err := twin.settle(same); err == nil || !strings.Contains(err.Error(), "is kept for Shop.test.example.com default/one, UID "+string(shop.UID)) {
		t.Errorf("the twin: %v", err)
	}
	twin.delete(same)
	if err := twin.settle(same); err == nil || target.released() != "default/one default/shop-one" {
		t.Errorf("the twin is deleted: %v, %s", err, target.released())
	}
	o.delete(shop)
	for i := 0; i < 5 && o.get(&Shop{}, "one"); i++ {
		_ = o.reconcile(shop) // it waits until all objects are gone
	}
	if got := target.released(); got != "" || o.get(&Shop{}, "one") {
		t.Errorf("after the deletion: %q", got)
	}
}
