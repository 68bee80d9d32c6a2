// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
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
	w.engineWith(options, doing("A", func(ctx context.Context, req *request) error {
		*runs++
		return do(ctx, req)
	}))
	return w, runs
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

// Only what the last reconcile has saved of the object has changed, or something else, too.
func TestOnlySaved(t *testing.T) {
	settings := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"}}
	for name, tt := range map[string]struct {
		do      func(ctx context.Context, w *world, req *request) error // in the first reconcile, after it has read the settings
		between func(w *world)
		want    bool
	}{
		"nothing else": {want: true},
		"a moment":     {between: func(*world) { time.Sleep(30 * time.Second) }, want: true},
		"saved twice": {do: func(ctx context.Context, _ *world, req *request) error {
			return req.Annotate(ctx, "example.com/a", "1")
		}, want: true},

		"a minute":                         {between: func(*world) { time.Sleep(time.Minute) }},
		"a user's label":                   {between: func(w *world) { w.edit(func(obj *Thing) { obj.Labels = map[string]string{"a": "b"} }) }},
		"the spec":                         {between: func(w *world) { w.edit(func(obj *Thing) { obj.Spec.Size++ }) }},
		"the status":                       {between: func(w *world) { w.editStatus(func(obj *Thing) { obj.Status.Size++ }) }},
		"an input":                         {between: func(w *world) { must(w.tb, w.server.Update(t.Context(), changed(w, settings))) }},
		"an input is gone":                 {between: func(w *world) { w.remove(settings.DeepCopy()) }},
		"a child was written that is read": {do: writeChild, want: true},
		"a child was written, and edited": {do: writeChild, between: func(w *world) {
			must(w.tb, w.server.Update(t.Context(), changed(w, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}})))
		}},
		"another client while it ran": {do: func(_ context.Context, w *world, _ *request) error {
			w.edit(func(obj *Thing) { obj.Labels = map[string]string{"a": "b"} })
			return nil
		}},
		"a child was written": {do: func(ctx context.Context, _ *world, req *request) error {
			return req.Client.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}})
		}},
		"it waited": {do: func(context.Context, *world, *request) error {
			return ctrlkit.Poll("something", time.Second)
		}},
		"it failed": {do: func(context.Context, *world, *request) error { return errors.New("failed") }},
	} {
		runInBubble(t, name, func(t *testing.T) {
			var w *world
			var got []bool
			w, _ = skipping(t, func(ctx context.Context, req *request) error {
				got = append(got, req.OnlySaved())
				if err := req.Client.Get(ctx, client.ObjectKeyFromObject(settings), &corev1.Secret{}); client.IgnoreNotFound(err) != nil {
					return err
				}
				if len(got) > 1 || tt.do == nil {
					return nil
				}
				return tt.do(ctx, w, req)
			}, settings.DeepCopy())
			_, _ = w.reconcile() // one of them fails
			if tt.between != nil {
				tt.between(w)
			}
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			same(t, "only saved", []bool{false, tt.want}, got)
		})
	}
}

// writeChild looks for a child, and creates it.
func writeChild(ctx context.Context, _ *world, req *request) error {
	child := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"}}
	if err := req.Client.Get(ctx, client.ObjectKeyFromObject(child), child); client.IgnoreNotFound(err) != nil {
		return err
	}
	return req.Client.Create(ctx, child)
}

// changed returns an object of the server with another label.
func changed(w *world, obj *corev1.Secret) *corev1.Secret {
	w.tb.Helper()
	now := &corev1.Secret{}
	must(w.tb, w.server.Get(context.Background(), client.ObjectKeyFromObject(obj), now))
	now.Labels = map[string]string{"a": "b"}
	return now
}

// An annotation is saved at once, and only if it differs.
func TestAnnotate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		value := "1"
		w, _ := skipping(t, func(ctx context.Context, req *request) error {
			if err := req.Annotate(ctx, "example.com/a", value); err != nil {
				return err
			}
			var now Thing
			if err := req.APIReader.Get(ctx, client.ObjectKeyFromObject(req.Object), &now); err != nil || now.Annotations["example.com/a"] != value {
				t.Errorf("after Annotate, the API server has %v and error %v, want %q", now.Annotations, err, value)
			}
			same(t, "the field owner", "things", req.FieldOwner())
			return nil
		})
		for _, value = range []string{"1", "1", "2", ""} {
			w.must()
		}
	})
}
