// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/step"
)

// A selective cleans up after objects with an annotation.
type selective struct{ step.Cleaner[*Thing] }

func (selective) Cleans(req *request) bool {
	return req.Object.Annotations["cleans"] != ""
}

// Only the objects for which a step has something to clean up get the finalizer; those that have it
// are cleaned up.
func TestSelectiveCleaner(t *testing.T) {
	for _, cleans := range []bool{false, true} {
		obj := newThing()
		if cleans {
			obj.Annotations = map[string]string{"cleans": "yes"}
		}
		w := newWorld(t, obj)
		cleaned := 0
		w.engine(selective{cleaning("A", passes, func(context.Context, *request) (ctrl.Result, error) {
			cleaned++
			return ctrl.Result{}, nil
		})})
		w.must()
		w.must()
		same(t, "has the finalizer", cleans, slices.Contains(w.thing().Finalizers, finalizer))
		must(t, w.client.Delete(t.Context(), w.thing()))
		w.must()
		if w.thing() != nil || (cleaned == 1) != cleans {
			t.Errorf("cleans: %t, cleaned up %d times, the object is there: %t", cleans, cleaned, w.thing() != nil)
		}
	}
}

// A kind of the core group has no standard finalizer. A step that may never clean up needs none.
func TestSelectiveCleanerOfACoreKind(t *testing.T) {
	if _, err := step.New(step.Options[*corev1.ConfigMap]{Name: "core", Client: fake.NewClientBuilder().Build()}, coreSelective{}); err != nil {
		t.Error(err)
	}
	if _, err := step.New(step.Options[*corev1.ConfigMap]{Name: "core", Client: fake.NewClientBuilder().Build()}, coreCleaner{}); err == nil {
		t.Error("a Cleaner of all objects needs a finalizer")
	}
}

type coreCleaner struct{}

func (coreCleaner) Name() string { return "A" }

func (coreCleaner) Do(context.Context, *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

func (coreCleaner) Cleanup(context.Context, *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	return ctrl.Result{}, nil
}

type coreSelective struct{ coreCleaner }

func (coreSelective) Cleans(*step.Request[*corev1.ConfigMap]) bool { return false }
