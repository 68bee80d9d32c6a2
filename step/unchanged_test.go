// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// skipping is a world whose engine skips unchanged objects, with a counter of the calls of its
// step.
func skipping(t *testing.T, do doFunc, objects ...client.Object) (w *world, runs *int) {
	t.Helper()
	w = newWorld(t, append(objects, newThing())...)
	options := w.options()
	options.APIReader = w.liveReader()
	options.SkipUnchanged = true
	runs = new(int)
	w.engineWith(options, doing("A", func(ctx context.Context, req *request) (ctrl.Result, error) {
		*runs++
		return do(ctx, req)
	}))
	return w, runs
}

// reading is a Do that reads a ConfigMap, one that is not there, and lists those with a label.
func reading(ctx context.Context, req *request) (ctrl.Result, error) {
	if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "input"}, &corev1.ConfigMap{}); err != nil {
		return ctrl.Result{}, err
	}
	if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "absent"}, &corev1.ConfigMap{}); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "partial"}, partial); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	return ctrlkit.RequeueIfError(req.Client.List(ctx, &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingLabels{"kind": "listed"}))
}

func listed(name string) *corev1.ConfigMap {
	cm := configMap(name, nil)
	cm.Labels = map[string]string{"kind": "listed"}
	return cm
}

func TestSkipUnchanged(t *testing.T) {
	update := func(w *world, name string) {
		cm := configMap(name, nil)
		must(w.tb, w.server.Get(context.Background(), client.ObjectKeyFromObject(cm), cm))
		cm.Data = map[string]string{"new": "data"}
		must(w.tb, w.server.Update(context.Background(), cm))
	}
	tests := []struct {
		name   string
		change func(w *world)
		runs   bool
	}{
		{"nothing", func(*world) {}, false},
		{"something else", func(w *world) { update(w, "bystander") }, false},
		{"the spec", func(w *world) { w.edit(func(obj *Thing) { obj.Spec.Size = 3 }) }, true},
		{"a label of the object", func(w *world) { w.edit(func(obj *Thing) { obj.Labels = map[string]string{"a": "b"} }) }, true},
		{"the status, by another client", func(w *world) { w.editStatus(func(obj *Thing) { obj.Status.Size = 42 }) }, true},
		{"an input", func(w *world) { update(w, "input") }, true},
		{"an input that was read as metadata", func(w *world) { update(w, "partial") }, true},
		{"an input is gone", func(w *world) { w.remove(configMap("partial", nil)) }, true},
		{"an absent one comes", func(w *world) { w.create(configMap("absent", nil)) }, true},
		{"an object of the list", func(w *world) { update(w, "listed-1") }, true},
		{"the list is longer", func(w *world) { w.create(listed("listed-3")) }, true},
		{"the list is shorter", func(w *world) { w.remove(listed("listed-1")) }, true},
		{"not long enough", func(*world) { pass(time.Hour - time.Nanosecond) }, false},
		{"an hour", func(*world) { pass(time.Hour) }, true},
		{"the input can't be read", func(w *world) { w.fault = failOn("get ConfigMap input", errFirst) }, true},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			w, runs := skipping(t, reading, configMap("input", nil), configMap("partial", nil), configMap("bystander", nil),
				listed("listed-1"), listed("listed-2"))
			w.must() // writes the conditions
			w.must() // sees that it is done
			if *runs != 2 {
				t.Fatalf("the steps ran %d times, want 2", *runs)
			}
			w.take(&w.live)
			test.change(w)
			_, _ = w.reconcile()
			same(t, "the steps ran again", test.runs, *runs > 2)
			none(t, "live reads", w.take(&w.live))
			if !test.runs {
				w.ended(journal.ResultConverged)
			}
		})
	}
}

func TestSkipUnchangedKeepsATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w, runs := skipping(t, continues(time.Minute))
		w.must()
		if got := w.must(); got.RequeueAfter != time.Minute || *runs != 2 {
			t.Fatalf("got %v after %d runs", got, *runs)
		}
		pass(40 * time.Second)
		same(t, "requeued after", 20*time.Second, w.must().RequeueAfter)
		same(t, "runs", 2, *runs)
		pass(20 * time.Second)
		same(t, "requeued after", time.Minute, w.must().RequeueAfter)
		same(t, "runs", 3, *runs)
	})
}

func TestNotUnchanged(t *testing.T) {
	n := 0
	tests := []struct {
		name string
		do   doFunc
	}{
		{"after a failure", failsWith(errFirst)},
		{"after a panic", panics("a bug")},
		{"after a wait", waits("the bucket")},
		{"after a write to a child", func(ctx context.Context, req *request) (ctrl.Result, error) {
			n++
			return ctrlkit.RequeueIfError(req.Client.Create(ctx, configMap(fmt.Sprint("child-", n), nil)))
		}},
		{"after a write to the status", changing(func(obj *Thing) { n++; obj.Status.Size = n })},
		{"after a read that failed", does(func(ctx context.Context, req *request) {
			_ = req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "broken"}, &corev1.ConfigMap{})
		})},
		{"after a list that failed", does(func(ctx context.Context, req *request) { _ = req.Client.List(ctx, &corev1.PodList{}) })},
		{"after too many reads", func(ctx context.Context, req *request) (ctrl.Result, error) {
			for range 65 {
				if err := req.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "input"}, &corev1.ConfigMap{}); err != nil {
					return ctrl.Result{}, err
				}
			}
			return ctrlkit.NoRequeue()
		}},
		{"after the read of a subresource", does(func(ctx context.Context, req *request) {
			_ = req.Client.SubResource("scale").Get(ctx, configMap("input", nil), configMap("input", nil))
		})},
	}
	for _, test := range tests {
		runInBubble(t, test.name, func(t *testing.T) {
			w, runs := skipping(t, test.do, configMap("input", nil))
			w.fault = func(request string) error {
				if strings.HasSuffix(request, "ConfigMap broken") || strings.HasPrefix(request, "list PodList") {
					return errFirst
				}
				return nil
			}
			for i := range 4 {
				_, _ = w.reconcile()
				if *runs != i+1 {
					t.Fatalf("reconcile %d did not run the steps", i+1)
				}
				pass(2 * time.Second)
			}
		})
	}
}

func TestOneDoneReconcileAfterAFailureIsNeeded(t *testing.T) {
	w, runs := skipping(t, passes)
	w.must()
	w.must()
	w.edit(func(obj *Thing) { obj.Labels = map[string]string{step.PauseAnnotation: "x"} })
	w.must()
	w.must()
	same(t, "runs", 3, *runs)
}

func TestWithoutSkipUnchanged(t *testing.T) {
	w := newWorld(t, newThing())
	runs := 0
	w.engine(doing("A", changing(func(*Thing) { runs++ })))
	for range 4 {
		w.must()
	}
	same(t, "runs", 4, runs)
}

// What a step knows of the cluster by a watch of its own counts as what it has read.
func TestSkipUnchangedDependsOnMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		changes := uint64(1)
		w, runs := skipping(t, does(func(_ context.Context, req *request) { req.DependOn(func() uint64 { return changes }) }))
		for _, want := range []int{1, 2, 2} { // the first one writes the conditions
			if w.must(); *runs != want {
				t.Fatalf("the step ran %d times, want %d", *runs, want)
			}
		}
		for _, changes = range []uint64{7, 0} {
			before := *runs
			w.must()
			same(t, "runs", before+1, *runs)
			w.must()
			same(t, "runs", before+1, *runs)
		}
	})
}

// An annotation is saved at once, and only if it differs.
func TestAnnotate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		value := "1"
		w, _ := skipping(t, func(ctx context.Context, req *request) (ctrl.Result, error) {
			if err := req.Annotate(ctx, "example.com/a", value); err != nil {
				return ctrlkit.RequeueIfError(err)
			}
			var now Thing
			if err := req.APIReader.Get(ctx, client.ObjectKeyFromObject(req.Object), &now); err != nil || now.Annotations["example.com/a"] != value {
				t.Errorf("after Annotate, the API server has %v and error %v, want %q", now.Annotations, err, value)
			}
			same(t, "the field owner", "things", req.FieldOwner())
			return ctrlkit.NoRequeue()
		})
		for _, value = range []string{"1", "1", "2", ""} {
			w.must()
		}
	})
}
