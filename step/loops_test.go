// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// applyThree applies three children, without reading them.
func applyThree(req *request) error {
	labels := map[string]string{"app": req.Object.Name}
	children := []runtime.ApplyConfiguration{
		corev1ac.ConfigMap("config", "default").WithOwnerReferences(owned(req.Object)).WithData(map[string]string{"size": fmt.Sprint(req.Object.Spec.Size)}),
		corev1ac.Service("service", "default").WithOwnerReferences(owned(req.Object)).
			WithSpec(corev1ac.ServiceSpec().WithSelector(labels).WithPorts(corev1ac.ServicePort().WithPort(80))),
		appsv1ac.Deployment("app", "default").WithOwnerReferences(owned(req.Object)).WithSpec(appsv1ac.DeploymentSpec().WithReplicas(2).
			WithSelector(metav1ac.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(labels).WithSpec(corev1ac.PodSpec().WithContainers(
				corev1ac.Container().WithName("main").WithImage("nginx:1"))))),
	}
	for _, child := range children {
		if err := req.Client.Apply(context.Background(), child, client.ForceOwnership); err != nil {
			return err
		}
	}
	return ctrlkit.AsError(ctrlkit.RequeueAfter(10 * time.Second))
}

func watchThree(b *builder.Builder) *builder.Builder {
	return b.Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Owns(&appsv1.Deployment{})
}

// An operator that applies its children in every reconcile is in no hot loop, also while they
// change by themselves.
func TestAppliesInEveryReconcile(t *testing.T) {
	rings.Test(t, "simulates forty minutes")
	tests := []struct {
		name string
		read bool
	}{
		{"without reading them", false},
		{"after reading them", true},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			c.start(operator{name: "things", watch: watchThree, steps: steps{
				doing("Apply", func(ctx context.Context, req *request) error {
					if test.read {
						for name, obj := range map[string]client.Object{"config": &corev1.ConfigMap{}, "service": &corev1.Service{}, "app": &appsv1.Deployment{}} {
							if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, obj); client.IgnoreNotFound(err) != nil {
								return err
							}
						}
					}
					return applyThree(req)
				}),
			}})
			deleted := configMap("config", nil)
			c.everySecond(20*time.Minute, func(second int) {
				if second%10 == 0 || second < 60 {
					c.rollOut(second % 7)
				}
				if second == 600 {
					c.must(c.user.Delete(t.Context(), deleted))
				}
			})
			c.noHotLoop("things")
			c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(deleted), &corev1.ConfigMap{}))
			if got := c.ran("things"); got < 133 {
				t.Errorf("the step ran %d times in 20 minutes, want at every change of a child", got)
			}
			if got := c.requested("GET app"); test.read && got > 0 || got > 133 {
				t.Errorf("%d live reads of a child that changes every second", got)
			}
		})
	}
}

// What is applied and was as wanted already is no write: the object is skipped, but not when the
// child changes.
func TestAnApplyThatChangesNothingMayBeSkipped(t *testing.T) {
	tests := []struct {
		name  string
		read  bool // from a cache of the type
		skips bool
	}{
		{"with a cache", true, true},
		{"without a cache nothing would show that the child changes", false, false},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			c.start(operator{name: "things", skipUnchanged: true, watch: watchThree, steps: steps{
				doing("Apply", func(ctx context.Context, req *request) error {
					if test.read {
						if err := req.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("elsewhere")); err != nil {
							return err
						}
					}
					return req.Client.Apply(ctx, corev1ac.ConfigMap("config", "default").
						WithOwnerReferences(owned(req.Object)).WithData(map[string]string{"a": "b"}), client.ForceOwnership)
				}),
			}})
			pass(time.Minute)
			before := c.ran("things")
			bystander := configMap("bystander", nil)
			bystander.OwnerReferences = []metav1.OwnerReference{{APIVersion: thingVersion.String(), Kind: "Thing", Name: "a", UID: c.thing().UID, Controller: new(true)}}
			c.create(bystander)
			pass(time.Minute)
			same(t, "it was skipped", test.skips, c.ran("things") == before)
			child := configMap("config", nil)
			c.must(c.user.Delete(t.Context(), child))
			pass(time.Minute)
			c.must(c.user.Get(t.Context(), client.ObjectKeyFromObject(child), child))
		})
	}
}

// An operator that deletes a child in every reconcile until it has gone is in no hot loop.
func TestPollsATerminatingChild(t *testing.T) {
	rings.Test(t, "simulates two hours")
	for _, read := range []bool{false, true} {
		runInCluster(t, fmt.Sprintf("read first: %v", read), func(t *testing.T, c *cluster) {
			child := configMap("child", nil)
			child.Finalizers = []string{"example.com/kept"}
			c.create(child)
			c.start(operator{name: "things", steps: steps{
				doing("Delete", func(ctx context.Context, req *request) error {
					obj := configMap("child", nil)
					if read {
						if err := req.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
							return client.IgnoreNotFound(err)
						}
					}
					if err := req.Client.Delete(ctx, obj); err != nil {
						return client.IgnoreNotFound(err)
					}
					return ctrlkit.Poll("the child to go", 2*time.Second)
				}),
			}})
			c.everySecond(time.Hour, nil)
			c.noHotLoop("things")
			if got := c.ran("things"); got < 1700 {
				t.Errorf("it was reconciled %d times in an hour, want every two seconds", got)
			}
			if got := c.requested("GET child"); got > 100 {
				t.Errorf("%d live reads of the child", got)
			}
		})
	}
}

// ownChild returns a ConfigMap that a Thing owns.
func ownChild(obj *Thing, name string, data map[string]string) *corev1.ConfigMap {
	cm := configMap(name, data)
	cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: thingVersion.String(), Kind: "Thing", Name: obj.Name, UID: obj.UID, Controller: new(true)}}
	return cm
}

// What looks like a hot loop, and is none.
func TestLegitimateWrites(t *testing.T) {
	rings.Test(t, "simulates two hours")
	every := func(d time.Duration, do func(ctx context.Context, req *request, n int) error) doFunc {
		n, last := 0, time.Time{}
		return func(ctx context.Context, req *request) error {
			if wait := d - req.Now.Sub(last); wait > 0 {
				return ctrlkit.AsError(ctrlkit.RequeueAfter(wait))
			}
			n, last = n+1, req.Now
			if err := do(ctx, req, n); err != nil {
				return err
			}
			return ctrlkit.AsError(ctrlkit.RequeueAfter(d))
		}
	}
	tests := []struct {
		name string
		do   doFunc
		// others do something after each second.
		others func(c *cluster, second int)
	}{
		{"a value of the status that flaps", every(5*time.Second, func(_ context.Context, req *request, n int) error {
			req.Object.Status.Size = n % 2
			return nil
		}), nil},
		{"a label of a child that flaps in one reconcile", every(5*time.Second, func(ctx context.Context, req *request, _ int) error {
			for _, value := range []string{"a", "b"} {
				if err := req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"metadata":{"labels":{"x":%q}}}`, value)); err != nil {
					return err
				}
			}
			return nil
		}), nil},
		{"a request that another controller takes away when it has served it", every(10*time.Second, func(ctx context.Context, req *request, n int) error {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			return req.Client.Patch(ctx, cm, mergePatch(`{"metadata":{"annotations":{"restart":"now"}}}`))
		}), func(c *cluster, _ int) {
			cm := configMap("child", nil)
			c.must(c.user.Get(c.t.Context(), client.ObjectKeyFromObject(cm), cm))
			if cm.Annotations["restart"] != "" {
				c.must(c.user.Patch(c.t.Context(), cm, mergePatch(`{"metadata":{"annotations":{"restart":null}}}`)))
			}
		}},
		{"a request that is made again without reading it", every(10*time.Second, func(ctx context.Context, req *request, _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"metadata":{"annotations":{"restart":"now"}}}`))
		}), func(c *cluster, _ int) {
			c.must(c.user.Patch(c.t.Context(), configMap("child", nil), mergePatch(`{"metadata":{"annotations":{"restart":null}}}`)))
		}},
		{"a child that others change elsewhere", every(5*time.Second, func(ctx context.Context, req *request, _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"data":{"size":"ours"}}`))
		}), func(c *cluster, second int) {
			c.must(c.user.Patch(c.t.Context(), configMap("child", nil), mergePatch(`{"data":{"other":"%d"}}`, second)))
		}},
		{"different JSON patches", every(5*time.Second, func(ctx context.Context, req *request, n int) error {
			return req.Client.Patch(ctx, configMap("child", nil), client.RawPatch("application/json-patch+json", fmt.Appendf(nil, `[{"op":"add","path":"/data","value":{"n":"%d"}}]`, n)))
		}), nil},
		{"deletions that match nothing", every(5*time.Second, func(ctx context.Context, req *request, _ int) error {
			for i := range 6 {
				if err := req.Client.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("default"), client.MatchingLabels{"n": fmt.Sprint(i)}); err != nil {
					return err
				}
			}
			return client.IgnoreNotFound(req.Client.Delete(ctx, configMap("absent", nil)))
		}), nil},
		{"dry runs", every(5*time.Second, func(ctx context.Context, req *request, _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"data":{"size":"dry"}}`), client.DryRunAll)
		}), nil},
		{"a field that another client has changed back twice", every(5*time.Second, func(ctx context.Context, req *request, _ int) error {
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"data":{"size":"ours"}}`))
		}), func(c *cluster, second int) {
			if second == 20 || second == 40 {
				c.must(c.user.Patch(c.t.Context(), configMap("child", nil), mergePatch(`{"data":{"size":"theirs"}}`)))
			}
		}},
		{"a roll-out in small steps", func(ctx context.Context, req *request) error {
			cm := configMap("child", nil)
			if err := req.Client.Get(ctx, client.ObjectKeyFromObject(cm), cm); err != nil {
				return err
			}
			_, err := fmt.Sscan(cm.Data["ready"], &req.Object.Status.Size)
			return err
		}, func(c *cluster, second int) {
			for i := range 200 { // faster than the operator writes its status
				if second > 1 {
					return
				}
				c.must(c.user.Patch(c.t.Context(), configMap("child", nil), mergePatch(`{"data":{"ready":"%d"}}`, 200*second+i)))
				pass(3 * time.Millisecond)
			}
		}},
		{"many children, one in each reconcile", func(ctx context.Context, req *request) error {
			list := &corev1.ConfigMapList{}
			if err := req.Client.List(ctx, list, client.InNamespace("default")); err != nil || len(list.Items) > 150 {
				return err
			}
			req.Object.Status.Size = len(list.Items)
			return req.Client.Create(ctx, ownChild(req.Object, fmt.Sprintf("child-%d", len(list.Items)), nil))
		}, nil},
		{"what follows the spec", func(ctx context.Context, req *request) error {
			size := req.Object.Spec.Size
			req.Object.Status.Size = size
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "tier", fmt.Sprint(size))
			return req.Client.Patch(ctx, configMap("child", nil), mergePatch(`{"data":{"size":"%d"}}`, size))
		}, func(c *cluster, second int) {
			c.must(c.user.Patch(c.t.Context(), c.thing(), mergePatch(`{"spec":{"size":%d}}`, second)))
		}},
		{"phases, one in each reconcile", changing(func(obj *Thing) { obj.Status.Size = min(obj.Status.Size+1, 40) }), nil},
	}
	for _, test := range tests {
		runInCluster(t, test.name, func(t *testing.T, c *cluster) {
			c.create(ownChild(c.thing(), "child", map[string]string{"size": "", "ready": "0"}))
			c.start(operator{name: "things", watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: steps{doing("Write", test.do)}})
			c.everySecond(6*time.Minute, func(second int) {
				if test.others != nil {
					test.others(c, second)
				}
			})
			c.noHotLoop("things")
			if got := c.ran("things"); got < 30 {
				t.Errorf("the step ran %d times", got)
			}
		})
	}
}

// A step that writes another value into a child each time makes the event of the next reconcile,
// too.
func TestEchoesThroughAChild(t *testing.T) {
	inCluster(t, func(c *cluster) {
		c.create(ownChild(c.thing(), "child", map[string]string{"a": "b"}))
		c.start(operator{name: "things", watch: func(b *builder.Builder) *builder.Builder { return b.Owns(&corev1.ConfigMap{}) }, steps: steps{
			doing("Write", func(ctx context.Context, req *request) error {
				patch := mergePatch(`{"data":{"at":"%d"}}`, req.Now.UnixNano())
				return req.Client.Patch(ctx, configMap("child", nil), patch)
			}),
		}})
		pass(time.Minute)
		if got := c.found("things"); len(got) == 0 || !slices.Equal(got[0].Fields, []string{".data.at"}) {
			t.Errorf("found %v", got)
		}
		if got := c.ran("things"); got > 200 {
			t.Errorf("the step ran %d times in a minute", got)
		}
	})
}
