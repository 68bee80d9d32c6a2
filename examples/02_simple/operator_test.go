// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
)

// The operator does its work against the real API server, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml")
	start(t, plane, "simple")

	applyAll(t, user, "config/samples/simple.yaml")
	seven := await(t, user, "seven-by-two", func(s *v1.Simple) bool { return reason(s, condition.Ready) == condition.ReasonReady })
	if *seven.Status.Quotient != 3 || *seven.Status.Remainder != 1 || seven.Status.ObservedGeneration != seven.Generation {
		t.Errorf("status %+v, want 7 = 3*2 + 1, of generation %d", seven.Status, seven.Generation)
	}
	one := await(t, user, "one-by-zero", func(s *v1.Simple) bool { return reason(s, condition.Stalled) == "DivisorIsZero" })
	conditiontest.Check(t, seven)
	conditiontest.Check(t, one)

	before := one.DeepCopy()
	one.Spec.Divisor = 5
	if err := user.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	one = await(t, user, "one-by-zero", func(s *v1.Simple) bool { return reason(s, condition.Ready) == condition.ReasonReady })
	conditiontest.Check(t, one)
	conditiontest.CheckChange(t, before, one)

	one.Spec.Divisor = 0 // the quotient goes
	if err := user.Update(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	one = await(t, user, "one-by-zero", func(s *v1.Simple) bool { return reason(s, condition.Stalled) == "DivisorIsZero" })
	if one.Status.Quotient != nil || one.Status.Remainder != nil {
		t.Errorf("status %+v, want no result of a division by zero", one.Status)
	}
}

// start runs the operator until the test ends.
func start(t *testing.T, plane *controlplane.ControlPlane, name string) {
	t.Helper()
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:" + name + "-system:" + name + "-operator"
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true) // another test may run it, too
	mgr, err := newManager(config, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the operator ended: %v", err)
		}
	})
}

// await returns an object as soon as it is as wanted.
func await(t *testing.T, user client.WithWatch, name string, done func(*v1.Simple) bool) *v1.Simple {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a failure shows the log of the operator
	defer cancel()
	w, err := user.Watch(ctx, &v1.SimpleList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if obj, ok := event.Object.(*v1.Simple); ok && done(obj) {
			return obj
		}
	}
	t.Fatalf("the watch ended before %s was as wanted", name)
	return nil
}

// reason returns the reason of a condition, if the condition is about the present spec.
func reason(obj *v1.Simple, kind string) string {
	for _, c := range obj.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == obj.Generation && (kind != condition.Ready || c.Status == metav1.ConditionTrue) {
			return c.Reason
		}
	}
	return ""
}
