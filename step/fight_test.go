// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An operator that replaces a child every 20 seconds, and keeps in its status what is active, is in
// no hot loop.
func TestReplacesChildren(t *testing.T) {
	rings.Test(t, "simulates hours")
	inCluster(t, func(c *cluster) {
		c.start(operator{name: "things", watch: watchThree, steps: steps{
			doing("Replace", func(ctx context.Context, req *request) error {
				child := configMap("child", nil)
				err := req.Client.Get(ctx, client.ObjectKeyFromObject(child), child)
				switch {
				case apierrors.IsNotFound(err):
					child = configMap("child", map[string]string{"a": "b"})
					if err := controllerutil.SetControllerReference(req.Object, child, allKinds()); err != nil {
						return err
					}
					req.Object.Status.Counters = map[string]int{"active": 1}
					return req.Client.Create(ctx, child)
				case err != nil:
					return err
				case req.Now.Sub(child.CreationTimestamp.Time) < 20*time.Second:
					return ctrlkit.AsError(ctrlkit.RequeueAfter(20*time.Second - req.Now.Sub(child.CreationTimestamp.Time)))
				}
				req.Object.Status.Counters = nil
				return req.Client.Delete(ctx, child)
			}),
		}})
		c.everySecond(time.Hour, nil)
		c.noHotLoop("things")
		if got := c.requested("DELETE child"); got < 150 {
			t.Errorf("replaced %d times in an hour", got)
		}
	})
}

// Two operators that write different values to one field: each reports the other.
func TestTwoOperatorsFight(t *testing.T) {
	update := func(value string) doFunc {
		return func(ctx context.Context, req *request) error {
			cm := configMap("shared", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			if cm.Data["tier"] == value {
				return nil
			}
			metav1.SetMetaDataAnnotation(&cm.ObjectMeta, "at", time.Now().String()) // its own business
			cm.Data["tier"] = value
			return req.Client.Update(ctx, cm)
		}
	}
	apply := func(value string) doFunc {
		return func(ctx context.Context, req *request) error {
			return req.Client.Apply(ctx, corev1ac.ConfigMap("shared", "default").WithData(map[string]string{"tier": value}), client.ForceOwnership)
		}
	}
	patch := func(value string) doFunc {
		return func(ctx context.Context, req *request) error {
			return req.Client.Patch(ctx, configMap("shared", nil), mergePatch(`{"data":{"tier":%q}}`, value))
		}
	}
	tests := []struct {
		name        string
		left, right func(value string) doFunc
		strip       bool
	}{
		{"both update", update, update, false},
		{"both update, and no managed fields are cached", update, update, true},
		{"one updates, and one applies", update, apply, false},
		{"both apply without reading", apply, apply, false},
		{"both patch without reading", patch, patch, true},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			shared := configMap("shared", map[string]string{"tier": "", "other": "x"})
			c.must(c.as("bystander").Create(t.Context(), shared))
			c.create(&Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}})
			c.start(operator{name: "left", of: "a", strip: test.strip, steps: steps{doing("Write", test.left("left"))}})
			c.start(operator{name: "right", of: "b", strip: test.strip, steps: steps{doing("Write", test.right("right"))}})
			pass(time.Minute)
			if len(c.found("left"))+len(c.found("right")) == 0 {
				t.Error("nothing was found within a minute")
			}
			pass(2 * time.Minute) // who does not read what it writes needs longer, while the other is slowed down
			for name, other := range map[string]string{"left": "right", "right": "left"} {
				found := c.found(name)
				if len(found) == 0 {
					t.Errorf("%s: nothing was found", name)
					continue
				}
				same(t, "found.Fields", []string{".data.tier"}, found[0].Fields)
				same(t, "found.Managers", []string{other}, found[0].Managers)
			}
		})
	}
}

// What is a hot loop, and who is named.
func TestFightsAreNamed(t *testing.T) {
	child := configMap("child", nil)
	patches := func(patch string) doFunc {
		return tries(func(ctx context.Context, req *request) error {
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch("%s", patch))
		})
	}
	patchesAs := func(manager, patch string) func(*cluster) error {
		return func(c *cluster) error {
			return c.as(manager).Patch(c.t.Context(), configMap("child", nil), mergePatch("%s", patch))
		}
	}
	tests := []struct {
		name  string
		do    doFunc
		spoil func(c *cluster) error // each second
		strip bool
		want  string // in Ready
		by    []string
	}{
		{"a field of a child", patches(`{"data":{"size":"ours"}}`), patchesAs("helm", `{"data":{"size":"theirs"}}`),
			false, `.data.size of ConfigMap default/child is written again and again: field manager "helm" writes it too, stop one of the two`, []string{"helm"}},
		{"a field of a child, with a JSON patch", func(ctx context.Context, req *request) error {
			return req.Client.Patch(ctx, configMap("child", nil), client.RawPatch("application/json-patch+json", []byte(`[{"op":"add","path":"/metadata/labels/example.com~1tier","value":"ours"}]`)))
		}, func(c *cluster) error {
			return c.as("helm").Patch(c.t.Context(), configMap("child", nil), mergePatch(`{"metadata":{"labels":{"example.com/tier":"theirs"}}}`))
		}, false, `.metadata.labels[example.com/tier] of ConfigMap default/child is written again and again: field manager "helm"`, []string{"helm"}},
		{"a field that is taken away, which leaves no manager", patches(`{"data":{"size":"ours"}}`), patchesAs("helm", `{"data":{"size":null}}`),
			false, `.data.size of ConfigMap default/child is written again and again: another client undoes it, which the managed fields do not name`, nil},
		{"a second copy of the operator", patches(`{"data":{"size":"ours"}}`), patchesAs("things", `{"data":{"size":"theirs"}}`),
			false, `field manager "things" writes it too, which is the name of this controller`, []string{"things"}},
		{"a value of the status, which the manager of the spec does not write", changing(func(obj *Thing) { obj.Status.Counters = map[string]int{"active": 1} }), func(c *cluster) error {
			return c.as("meddler").Status().Patch(c.t.Context(), c.thing(), mergePatch(`{"status":{"counters":{"active":7}}}`))
		}, true, `.status.counters.active of Thing default/a is written again and again: field manager "meddler" writes it too`, []string{"meddler"}},
		{"a condition, also when its time moves", changing(func(obj *Thing) {}), func(c *cluster) error {
			obj := c.thing()
			for i := range obj.Status.Conditions {
				if obj.Status.Conditions[i].Type == condition.Ready {
					obj.Status.Conditions[i].Status, obj.Status.Conditions[i].LastTransitionTime = metav1.ConditionUnknown, metav1.Now()
				}
			}
			return c.as("meddler").Status().Update(c.t.Context(), obj)
		}, true, `.status.conditions[Ready] of Thing default/a is written again and again: field manager "meddler" writes it too`, []string{"meddler"}},
		{"a list of which another manager owns an item that is not disputed", patches(`{"metadata":{"finalizers":["example.com/kept","example.com/ours"]}}`), patchesAs("helm", `{"metadata":{"finalizers":["example.com/kept"]}}`),
			false, `.metadata.finalizers of ConfigMap default/child is written again and again: another client undoes it`, nil},
		{"an object whose status moves", func(ctx context.Context, req *request) error {
			b := newThing()
			if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "b"}, b); err != nil {
				return err
			}
			b.Spec.Size = 7
			if err := req.Client.Update(ctx, b); err != nil {
				return err
			}
			return ctrlkit.AsError(ctrlkit.RequeueAfter(time.Second))
		}, func(c *cluster) error {
			b := &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}
			size := c.ran("things") % 100
			return errors.Join(c.as("helm").Patch(c.t.Context(), b, mergePatch(`{"spec":{"size":1}}`)), c.user.Status().Patch(c.t.Context(), b, mergePatch(`{"status":{"size":%d}}`, size)))
		}, false, `.spec.size of Thing default/b is written again and again: field manager "helm" writes it too`, []string{"helm"}},
		{"a child that is deleted", func(ctx context.Context, req *request) error {
			return client.IgnoreAlreadyExists(req.Client.Create(ctx, ownChild(req.Object, "child", nil)))
		}, func(c *cluster) error { return c.as("reaper").Delete(c.t.Context(), child) }, false,
			"ConfigMap default/child is created again and again: another client deletes it", nil},
		{"a child that is deleted, and applied again", func(ctx context.Context, req *request) error {
			return req.Client.Apply(ctx, corev1ac.ConfigMap("child", "default").WithOwnerReferences(owned(req.Object)))
		}, func(c *cluster) error { return c.as("reaper").Delete(c.t.Context(), child) }, false,
			"ConfigMap default/child is created again and again: another client deletes it", nil},
		{"a child that is created", func(ctx context.Context, req *request) error {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return client.IgnoreNotFound(err)
			}
			return req.Client.Delete(ctx, cm)
		}, func(c *cluster) error {
			return c.as("helm").Create(c.t.Context(), ownChild(c.thing(), "child", map[string]string{"a": "b"}))
		}, false,
			`ConfigMap default/child is deleted again and again: field manager "helm" creates it, stop one of the two`, []string{"helm"}},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			mine := ownChild(c.thing(), "child", map[string]string{"size": "", "other": "x"})
			mine.Labels = map[string]string{"a": "b"}
			if strings.Contains(test.want, "finalizers") {
				mine.Finalizers = []string{"example.com/kept"}
			}
			c.must(c.as("bystander").Create(t.Context(), mine))
			c.must(c.as("helm").Create(t.Context(), &Thing{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}}))
			c.start(operator{name: "things", of: "a", strip: test.strip, watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: steps{doing("Write", test.do)}})
			c.everySecond(time.Minute, func(int) {
				if len(c.found("things")) == 0 {
					_ = test.spoil(c) // while the operator has not written, there may be nothing to spoil
				}
			})
			found := c.found("things")
			if len(found) == 0 {
				t.Error("nothing was found")
				return
			}
			same(t, "managers", test.by, found[0].Managers)
			if got := c.ready(); !strings.Contains(got, "False HotLoop: ") || !strings.Contains(got, test.want) {
				t.Errorf("Ready: got %q, want %q in it", got, test.want)
			}
		})
	}
}
