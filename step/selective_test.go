// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
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
