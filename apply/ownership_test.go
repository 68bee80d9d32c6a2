// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// A child is a kind of child in the table of docs/ownership.md: the object "x" of a set.
type child struct {
	kind    client.Object
	options []apply.SetOption
	policy  []any
	object  func() client.Object
}

var children = map[string]child{
	"owned":   {&corev1.ConfigMap{}, []apply.SetOption{apply.Owns(&corev1.ConfigMap{})}, nil, func() client.Object { return newConfigMap("x", "ours", "1") }},
	"tracked": {&corev1.ConfigMap{}, []apply.SetOption{apply.Tracks(&corev1.ConfigMap{})}, []any{apply.Unowned}, func() client.Object { return newConfigMap("x", "ours", "1") }},
	"once":    {&batchv1.Job{}, []apply.SetOption{apply.Owns(&batchv1.Job{})}, []any{apply.Once}, func() client.Object { return newJob("x", "busybox:1") }},
}

// build returns what a Shop wants: the child.
func (c child) build(_ *Shop, set *apply.Set) {
	set.Add(append([]any{c.object()}, c.policy...)...)
}

// operatorOf returns an operator of an engine whose step keeps the child.
func (c child) operatorOf(in *cluster, engine, name string) *operator {
	o := &operator{cluster: in, name: engine, want: c.build}
	o.step = apply.Children(name, func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
		o.want(req.Object, set)
		return nil
	}, c.options...)
	return o.start()
}

const adoptWord = `{"metadata":{"annotations":{"apply.ctrlkit.dev/policy":"adopt"}}}`

// The scenes of docs/ownership.md for children: "x" is there before the Shop is reconciled, and
// prepare says whose it is.
var ownership = []struct {
	name    string
	in      string
	prepare func(c child, in *cluster, shop *Shop)
	// want is "kept" or "refused", and what becomes of it when the Shop is deleted.
	want string
}{
	{"of no object", "owned, tracked, once", func(c child, in *cluster, _ *Shop) { in.create(c.object()) }, "refused, left"},
	{"of no object, with the annotation `policy: adopt`", "owned, tracked, once", func(c child, in *cluster, _ *Shop) {
		in.create(c.object())
		in.patch(c.object(), adoptWord)
	}, "kept, deleted"},
	{"of another living object", "owned, tracked, once", func(c child, in *cluster, _ *Shop) { c.ofAnother(in) }, "refused, left"},
	{"of another living object, and says that it may be adopted", "owned, tracked, once", func(c child, in *cluster, _ *Shop) {
		c.ofAnother(in)
		in.patch(c.object(), adoptWord)
	}, "refused, left"},
	{"of another object that is gone, and says that it may be adopted", "tracked", func(c child, in *cluster, _ *Shop) {
		in.delete(c.ofAnother(in))
		in.patch(c.object(), adoptWord)
	}, "refused, left"},
	{"given by another living object", "owned, tracked, once", func(c child, in *cluster, _ *Shop) {
		c.ofAnother(in)
		in.patch(c.object(), `{"metadata":{"ownerReferences":null,"labels":{"apply.ctrlkit.dev/set":null},"annotations":{"apply.ctrlkit.dev/owner":null,"apply.ctrlkit.dev/policy":"adopt"}}}`)
	}, "kept, deleted"},
	{"of the same object under its former UID", "tracked", func(c child, in *cluster, shop *Shop) {
		c.operatorOf(in, "shops", "Parts").mustSettle(shop)
		in.again(shop)
	}, "kept, deleted"},
	{"of another engine of the same object", "owned, tracked, once", func(c child, in *cluster, shop *Shop) {
		c.operatorOf(in, "stores", "Parts").mustSettle(shop)
	}, "refused, deleted by that one"},
	{"of another step of the same object", "owned, once", func(c child, in *cluster, shop *Shop) {
		c.operatorOf(in, "shops", "Others").mustSettle(shop)
	}, "refused, deleted by that one"},
	{"of a stranger, who has replaced ours", "owned, tracked", func(c child, in *cluster, shop *Shop) {
		c.operatorOf(in, "shops", "Parts").mustSettle(shop)
		in.delete(c.read(in))
		in.create(c.object())
	}, "refused, left"},
}

// ofAnother has the child kept by another Shop, which it returns.
func (c child) ofAnother(in *cluster) *Shop {
	other := in.shop("other")
	c.operatorOf(in, "shops", "Parts").mustSettle(other)
	return other
}

// read returns the child as it is, nil if it is gone.
func (c child) read(in *cluster) client.Object {
	obj := c.object()
	if !in.get(obj, "x") {
		return nil
	}
	return obj
}

// again replaces a Shop by one of the same name, without its finalizers having run.
func (c *cluster) again(shop *Shop) {
	c.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: shop.Name}}, `{"metadata":{"finalizers":null}}`)
	c.delete(shop)
	*shop = Shop{ObjectMeta: metav1.ObjectMeta{Name: shop.Name}}
	c.create(shop)
}

func TestOwnership(t *testing.T) {
	for _, tt := range ownership {
		for kind := range strings.SplitSeq(tt.in, ", ") {
			t.Run(tt.name+", "+kind, func(t *testing.T) {
				c, in := children[kind], newCluster(t)
				shop := in.shop("shop")
				tt.prepare(c, in, shop)
				before := c.read(in)
				o := c.operatorOf(in, "shops", "Parts")
				got := "kept"
				if err := o.settle(shop); err != nil {
					got = "refused"
				}
				after := c.read(in)
				if got == "refused" && after.GetResourceVersion() != before.GetResourceVersion() {
					t.Errorf("%s is refused, and has become %v", kind, after)
				}
				in.delete(shop)
				_ = o.settle(shop)
				if strings.HasSuffix(tt.want, "by that one") && kind == "tracked" { // else the garbage collector deletes it
					if c.read(in) == nil {
						t.Error("it is deleted before its own engine has seen the deletion")
					}
					c.operatorOf(in, "stores", "Parts").mustSettle(shop)
				}
				if in.get(&Shop{}, "shop") {
					t.Error("the deletion hangs: " + o.condition(shop))
				}
				if got += ", left"; c.read(in) == nil {
					got = strings.Replace(got, "left", "deleted", 1)
				}
				if got != strings.TrimSuffix(tt.want, " by that one") {
					t.Errorf("%s, want %s: %s", got, tt.want, o.condition(shop))
				}
			})
		}
	}
}

// Whose set an object belongs to is said.
func TestOtherSetsAreNamed(t *testing.T) {
	for _, tt := range []struct{ kind, engine, step, want string }{
		{"owned", "stores", "Parts", `the set of operator "stores", of the same Shop and is not ours`},
		{"tracked", "stores", "Parts", `the set of operator "stores", of Shop.test.example.com default/shop and is not ours`},
		{"owned", "shops", "Others", `another set of this operator, of the same Shop and is not ours`},
	} {
		c, in := children[tt.kind], newCluster(t)
		shop := in.shop("shop")
		c.operatorOf(in, tt.engine, tt.step).mustSettle(shop)
		if err := c.operatorOf(in, "shops", "Parts").settle(shop); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
}

func TestOwnershipIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/ownership.md")
	must(t, err)
	for _, tt := range ownership {
		claimed, deletion, _ := strings.Cut(tt.want, ", ")
		if row := fmt.Sprintf("\n| %s | %s | %s |\n", tt.name, claimed, deletion); !strings.Contains(string(page), row) {
			t.Errorf("docs/ownership.md has no row %s", row)
		}
	}
}
