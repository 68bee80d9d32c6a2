// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// Bugs that were found in the field, each with a scenario in which a naive operator has it and a
// set has not.

// A keeping keeps the objects that build returns: with a set, or naively.
type keeping struct {
	build    func(ctx context.Context, c client.Client, shop *Shop) ([]client.Object, error)
	policies []any
	options  []apply.SetOption
}

func (k keeping) set(name string) step.Step[*Shop] {
	return apply.Children(name, func(ctx context.Context, req *step.Request[*Shop], want *apply.Set) error {
		objects, err := k.build(ctx, req.Client, req.Object)
		for _, obj := range objects {
			want.Add(append([]any{obj, apply.NoWait}, k.policies...)...)
		}
		return err
	}, append([]apply.SetOption{apply.Owns(&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}, &batchv1.Job{})}, k.options...)...)
}

func (k keeping) naive() step.Step[*Shop] { return k.naivelyOf().step() }

func (k keeping) naivelyOf() *naive {
	n := &naive{build: func(ctx context.Context, c client.Client, shop *Shop) []client.Object {
		objects, _ := k.build(ctx, c, shop)
		for _, obj := range objects {
			kinded(obj)
		}
		return objects
	}}
	for _, obj := range []client.Object{&corev1.ConfigMap{}, &appsv1.Deployment{}, &corev1.Service{}, &batchv1.Job{}} {
		n.kinds = append(n.kinds, kinded(obj).GetObjectKind().GroupVersionKind())
	}
	return n
}

// always returns the same objects.
func always(objects ...client.Object) func(context.Context, client.Client, *Shop) ([]client.Object, error) {
	return func(context.Context, client.Client, *Shop) ([]client.Object, error) {
		copies := make([]client.Object, len(objects))
		for i, obj := range objects {
			copies[i] = obj.DeepCopyObject().(client.Object)
		}
		return copies, nil
	}
}

// inTheField runs a scenario with a set, in which it must find nothing, and with a naive operator,
// in which it must find the bug. Start returns an operator.
func inTheField(t *testing.T, k keeping, scenario func(c *cluster, start func() *operator) (bug string)) {
	t.Helper()
	c := newCluster(t)
	if bug := scenario(c, func() *operator { return c.operatorOf(k.set("Parts")) }); bug != "" {
		t.Errorf("a set: %s", bug)
	}
	c = newCluster(t)
	bug := scenario(c, func() *operator { return c.operatorOf(k.naive()) })
	if bug == "" {
		t.Error("a naive operator ends well: the scenario shows nothing")
	}
	t.Logf("a naive operator: %s", bug)
}

// isIdle reports whether reconciles end without a write.
func (o *operator) isIdle(shop *Shop) bool {
	for range 4 {
		_ = o.reconcile(shop)
	}
	o.takeWrites()
	_ = o.reconcile(shop)
	return len(o.takeWrites()) == 0
}

// The name and the namespace of the owner were joined without a separator.
func TestFieldIdentityCollision(t *testing.T) {
	k := keeping{build: func(_ context.Context, _ client.Client, shop *Shop) ([]client.Object, error) {
		return []client.Object{newConfigMap("of-" + shop.Name)}, nil
	}}
	inTheField(t, k, func(c *cluster, start func() *operator) string {
		o := start()
		shops := []*Shop{{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod"}}, {ObjectMeta: metav1.ObjectMeta{Name: "we", Namespace: "bprod"}}}
		for _, shop := range shops {
			c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: shop.Namespace}})
			c.create(shop)
			o.settle(shop)
		}
		for _, shop := range shops {
			cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop.Namespace}}
			if !c.get(cm, "of-"+shop.Name) {
				return "the child of " + shop.Namespace + "/" + shop.Name + " is deleted"
			}
		}
		return ""
	})
}

// An apply took the objects of other owners over.
func TestFieldSilentTakeover(t *testing.T) {
	inTheField(t, keeping{build: always(newConfigMap("a", "k", "ours"))}, func(c *cluster, start func() *operator) string {
		other := c.shop("other")
		cm := newConfigMap("a", "k", "theirs")
		cm.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(other, shopVersion.WithKind("Shop"))}
		c.create(cm)
		o, shop := start(), c.shop("shop")
		o.settle(shop)
		if got := c.configMap("a"); got != "k=theirs" {
			return "it has " + got
		}
		return ""
	})
}

// A list that failed was taken for an empty one, and all was pruned.
func TestFieldEmptyListPrunesEverything(t *testing.T) {
	k := keeping{build: func(ctx context.Context, c client.Client, _ *Shop) ([]client.Object, error) {
		list := &corev1.SecretList{}
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		var objects []client.Object
		for i := range list.Items {
			objects = append(objects, newConfigMap("of-"+list.Items[i].Name))
		}
		return objects, nil
	}}
	inTheField(t, k, func(c *cluster, start func() *operator) string {
		c.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		o, shop := start(), c.shop("shop")
		o.mustSettle(shop)
		for _, kind := range []string{"SecretList", "ConfigMapList"} {
			o.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				if strings.HasSuffix(fmt.Sprintf("%T", list), kind) {
					return errors.New("the API server is busy")
				}
				return c.List(ctx, list, opts...)
			}
			o.settle(shop)
			if c.configMap("of-a") == "-" {
				return "a list failed, and all is gone"
			}
		}
		return ""
	})
}

// The source of a set was empty for a moment.
func TestFieldEmptySourcePrunesEverything(t *testing.T) {
	var source []client.Object
	k := keeping{build: func(ctx context.Context, c client.Client, shop *Shop) ([]client.Object, error) {
		return always(source...)(ctx, c, shop)
	}}
	inTheField(t, k, func(c *cluster, start func() *operator) string {
		source = nil
		for i := range 30 {
			source = append(source, newConfigMap(fmt.Sprint("n", i)))
		}
		o, shop := start(), c.shop("shop")
		o.mustSettle(shop)
		source = nil
		o.settle(shop)
		if c.configMap("n7") == "-" {
			return "30 objects are gone"
		}
		return ""
	})
}

// Zero values that Go encodes were claimed, and reset what others had set.
func TestFieldZeroValues(t *testing.T) {
	service := newService("s")
	inTheField(t, keeping{build: always(service)}, func(c *cluster, start func() *operator) string {
		o, shop := start(), c.shop("shop")
		o.settleOrNot(shop)
		c.patch(newService("s"), `{"spec":{"ports":[{"port":80,"targetPort":8080}]}}`)
		o.settleOrNot(shop)
		got := &corev1.Service{}
		c.get(got, "s")
		if got.Spec.Ports[0].TargetPort != intstr.FromInt32(8080) {
			return "targetPort was set to " + got.Spec.Ports[0].TargetPort.String()
		}
		return ""
	})
}

// settleOrNot reconciles some times, whether it becomes idle or not.
func (o *operator) settleOrNot(shop *Shop) {
	for range 4 {
		_ = o.reconcile(shop)
	}
}

// An update that the API server refuses was tried for ever.
func TestFieldImmutableFieldLoop(t *testing.T) {
	job := newJob("j", "busybox:1")
	k := keeping{build: func(ctx context.Context, c client.Client, shop *Shop) ([]client.Object, error) {
		return always(job)(ctx, c, shop)
	}, policies: []any{apply.Replace}}
	inTheField(t, k, func(c *cluster, start func() *operator) string {
		job = newJob("j", "busybox:1")
		o, shop := start(), c.shop("shop")
		o.settleOrNot(shop)
		job = newJob("j", "busybox:2")
		o.settleOrNot(shop)
		got := &batchv1.Job{}
		if !c.get(got, "j") || got.Spec.Template.Spec.Containers[0].Image != "busybox:2" {
			return fmt.Sprintf("the Job is not replaced: %v", o.reconcile(shop))
		}
		return ""
	})
}

// Values that mean the same were compared as texts, and lists by position, and written for ever.
func TestFieldListOrderAndQuantityLoops(t *testing.T) {
	t.Run("quantity", testFieldQuantityLoop)
	t.Run("list order", testFieldListOrderLoop)
}

func testFieldQuantityLoop(t *testing.T) {
	web := newDeployment("web", 1)
	web.Spec.Template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}
	u := unstructuredFrom(nil)
	u.Object, _ = runtime.DefaultUnstructuredConverter.ToUnstructured(kinded(web))
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	must(t, unstructured.SetNestedField(containers[0].(map[string]any), "1000m", "resources", "limits", "cpu"))
	must(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
	delete(u.Object, "status")
	inTheField(t, keeping{build: always(u)}, func(c *cluster, start func() *operator) string {
		o, shop := start(), c.shop("shop")
		if !o.isIdle(shop) {
			return "it writes for ever"
		}
		return ""
	})
}

func testFieldListOrderLoop(t *testing.T) {
	web := newDeployment("web", 1)
	web.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "1"}}
	inTheField(t, keeping{build: always(web)}, func(c *cluster, start func() *operator) string {
		o, shop := start(), c.shop("shop")
		if !o.isIdle(shop) {
			t.Fatal("it writes although nothing was reordered")
		}
		for range 3 {
			got := &appsv1.Deployment{}
			c.get(got, "web")
			env := got.Spec.Template.Spec.Containers[0].Env
			slices.SortFunc(env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
			must(t, c.client.Update(c.ctx, got, client.FieldOwner("sorter")))
			o.takeWrites()
			if err := o.reconcile(shop); err != nil {
				return err.Error()
			}
			if writes := o.takeWrites(); len(writes) > 0 {
				return fmt.Sprintf("it writes because a list was reordered: %v", writes)
			}
		}
		return ""
	})
}

// A webhook changed what was sent, and the operator changed it back, for ever.
func TestFieldWebhookChangesFields(t *testing.T) {
	inTheField(t, keeping{build: always(newConfigMap("a", "image", "nginx"))}, func(c *cluster, start func() *operator) string {
		o, shop := start(), c.shop("shop")
		o.funcs.Apply = func(ctx context.Context, c client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			sent := config.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
			_ = unstructured.SetNestedField(sent, "mirror.example.com/nginx", "data", "image")
			return c.Apply(ctx, config, opts...)
		}
		if !o.isIdle(shop) {
			return "it writes for ever"
		}
		if got := c.configMap("a"); got != "image=mirror.example.com/nginx" {
			return got
		}
		return ""
	})
}

// Two operators wanted the same child, and overwrote each other for ever.
func TestFieldTwoOperatorsOnOneChild(t *testing.T) {
	for _, naively := range []bool{false, true} {
		c := newCluster(t)
		var operators []*operator
		shops := []*Shop{c.shop("one"), c.shop("two")}
		for i := range shops {
			k := keeping{build: always(newConfigMap("a", "of", fmt.Sprint(i)))}
			s := k.set("Parts")
			if naively {
				s = k.naive()
			}
			operators = append(operators, c.operatorOf(s))
		}
		idle := false
		for range 4 {
			idle = true
			for i, o := range operators {
				o.takeWrites()
				_ = o.reconcile(shops[i])
				idle = idle && len(o.takeWrites()) == 0
			}
		}
		if idle == naively {
			t.Errorf("naively: %t, idle: %t", naively, idle)
		}
		if err := operators[1].reconcile(shops[1]); !naively && (err == nil || !strings.Contains(err.Error(), "is controlled by Shop one and is not ours")) {
			t.Errorf("the second one: %v", err)
		}
	}
}

// An owner was deleted and created again, and what was left of the first one was taken for the
// second one's.
func TestFieldOwnerRecreatedUnderTheSameName(t *testing.T) {
	var data string
	k := keeping{build: func(context.Context, client.Client, *Shop) ([]client.Object, error) {
		return []client.Object{newConfigMap("a", "of", data)}, nil
	}}
	inTheField(t, k, func(c *cluster, start func() *operator) string {
		data = "first"
		o, shop := start(), c.shop("shop")
		o.mustSettle(shop)
		c.patch(newConfigMap("a"), `{"metadata":{"finalizers":["example.com/hold"]}}`)
		c.delete(shop)
		o.settle(shop)
		data = "second"
		again := c.shop("shop")
		o.settle(again)
		if got := c.configMap("a"); got != "of=first" {
			return "what is being deleted was changed: " + got
		}
		c.patch(newConfigMap("a"), `{"metadata":{"finalizers":null}}`)
		o.settle(again)
		if got := c.configMap("a"); got != "of=second" {
			return got
		}
		return ""
	})
}

// A new version of the operator had another kind of child, and the old one stayed.
func TestFieldKindRenamedBetweenVersions(t *testing.T) {
	for _, naively := range []bool{false, true} {
		c := newCluster(t)
		shop := c.shop("shop")
		first := keeping{build: always(newConfigMap("a")), options: []apply.SetOption{apply.Owns(&corev1.ConfigMap{})}}
		second := keeping{build: always(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "a"}})}
		var v1, v2 step.Step[*Shop]
		if v1, v2 = first.set("Parts"), versionTwo(second); naively {
			v1 = first.naive()
			n := second.naivelyOf()
			n.kinds = []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")}
			v2 = n.step()
		}
		c.operatorOf(v1).mustSettle(shop)
		c.operatorOf(v2).mustSettle(shop)
		if there := c.configMap("a") != "-"; there != naively {
			t.Errorf("naively: %t, the ConfigMap is there: %t", naively, there)
		}
	}
}

func versionTwo(k keeping) step.Step[*Shop] {
	return apply.Children("Parts", func(ctx context.Context, req *step.Request[*Shop], want *apply.Set) error {
		objects, err := k.build(ctx, req.Client, req.Object)
		want.Add(objects[0])
		return err
	}, apply.Owns(&corev1.Secret{}), apply.Formerly(&corev1.ConfigMap{}))
}
