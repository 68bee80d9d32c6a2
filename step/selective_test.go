// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit/step"
)

// annotated cleans up after objects with an annotation.
func annotated(req *request) bool {
	return req.Object.Annotations["cleans"] != ""
}

// A kind of the core group has no standard finalizer. A step that may never clean up needs none.
func TestSelectiveCleanerOfACoreKind(t *testing.T) {
	options := step.Options[*corev1.ConfigMap]{Name: "core", Client: fake.NewClientBuilder().Build()}
	cleans := step.Step[*corev1.ConfigMap]{Name: "A", Cleanup: func(context.Context, *step.Request[*corev1.ConfigMap]) error { return nil }}
	selective := cleans
	selective.Cleans = func(*step.Request[*corev1.ConfigMap]) bool { return false }
	if _, err := step.New(options, selective); err != nil {
		t.Error(err)
	}
	if _, err := step.New(options, cleans); err == nil {
		t.Error("a Cleanup of all objects needs a finalizer")
	}
}
