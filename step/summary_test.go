// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

func TestTransitionTimesMoveWithTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var err error
		w.engine(doing("A", func(context.Context, *request) error { return err }))
		w.must()
		changed := func() time.Time {
			return meta.FindStatusCondition(w.thing().Status.Conditions, "Ready").LastTransitionTime.UTC()
		}
		start := time.Now().UTC()
		pass(time.Minute)
		w.edit(func(obj *Thing) { obj.Spec.Size = 1 })
		w.must()
		if got := changed(); !got.Equal(start) {
			t.Errorf("still Ready: got %v, want %v", got, start)
		}
		err = errFirst
		w.fails()
		if got, want := changed(), start.Add(time.Minute); !got.Equal(want) {
			t.Errorf("not Ready any more: got %v, want %v", got, want)
		}
		pass(time.Minute)
		err = forbiddenError()
		w.fails()
		if got, want := changed(), start.Add(time.Minute); !got.Equal(want) {
			t.Errorf("not Ready for another reason: got %v, want %v", got, want)
		}
	})
}

// A type without conditions works, too.
func TestATypeWithoutConditions(t *testing.T) {
	w := newWorld(t, configMap("a", nil))
	e, err := step.New(step.Options[*corev1.ConfigMap]{Name: "maps", Client: w.client, Recorder: w},
		step.Step[*corev1.ConfigMap]{Name: "A", Do: func(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
			if req.Conditions != nil {
				t.Error("there are conditions")
			}
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen", "true")
			return errFirst
		}})
	must(t, err)
	if _, err := e.Reconcile(t.Context(), thingRequest); !errors.Is(err, errFirst) {
		t.Errorf("got %v", err)
	}
	got := &corev1.ConfigMap{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, got); err != nil || got.Labels["seen"] != "true" {
		t.Errorf("got %v, %v", got.Labels, err)
	}
	w.wrote("patch ConfigMap a")
}
