// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// The operator does its work against the real API server, with the permissions of its role and no
// others.
func TestOperator(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml", "config/admission/policy.yaml")
	start(t, plane, "rwexternal")

	applyAll(t, user, "config/samples/rwexternal.yaml")
	divide := await(t, user, "divide", func(r *v1.RWExternal) bool { return reason(r, condition.Ready) == condition.ReasonReady })
	waits := await(t, user, "waits", func(r *v1.RWExternal) bool { return reason(r, condition.Reconciling) == "SecretNotFound" })
	conditiontest.Check(t, divide)
	conditiontest.Check(t, waits)

	output := &corev1.Secret{}
	outputKey := client.ObjectKey{Namespace: "default", Name: "quotient"}
	if err := user.Get(t.Context(), outputKey, output); err != nil {
		t.Fatal(err)
	}
	if got, want := divide.Status.OutputSecret, (v1.SecretReference{Namespace: "default", Name: "quotient"}); got == nil || *got != want {
		t.Errorf("status.outputSecret: %v, want %v", got, want)
	}
	if string(output.Data["quotient"]) != "3" || string(output.Data["remainder"]) != "1" {
		t.Errorf("output %q, want the quotient of 7 and 2", output.Data)
	}

	missing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "missing"}, StringData: map[string]string{"dividend": "1", "divisor": "0"}}
	if err := user.Create(t.Context(), missing); err != nil {
		t.Fatal(err)
	}
	after := await(t, user, "waits", func(r *v1.RWExternal) bool { return reason(r, condition.Stalled) == "DivisorIsZero" })
	conditiontest.Check(t, after)
	conditiontest.CheckChange(t, waits, after)
	if !meta.IsStatusConditionTrue(after.Status.Conditions, v1.ConditionInputReady) || !meta.IsStatusConditionFalse(after.Status.Conditions, v1.ConditionOutputReady) {
		t.Errorf("a division by zero: %+v, want that the input is ready and the output is not", after.Status.Conditions)
	}

	// The output of an RWExternal is deleted with it.
	if err := user.Delete(t.Context(), divide); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, user, divide)
	if err := user.Get(t.Context(), outputKey, output); !apierrors.IsNotFound(err) {
		t.Errorf("reading the output after the cleanup: %v, want that it does not exist", err)
	}
}

// The message says which key is wrong, and never what is in it. The output has a default.
func TestMessagesNameTheKey(t *testing.T) {
	tests := []struct {
		name, want string
		data       map[string][]byte
	}{
		{"no dividend", "the key dividend is missing", map[string][]byte{"divisor": []byte("2")}},
		{"no divisor", "the key divisor is missing", map[string][]byte{"dividend": []byte("7")}},
		{"not a number", "the value of the key divisor is not an integer", map[string][]byte{"dividend": []byte("7"), "divisor": []byte("hunter2")}},
		{"both", "", map[string][]byte{"dividend": []byte("7"), "divisor": []byte("2")}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, problem := divisionOf(&corev1.Secret{Data: test.data})
			if !strings.HasPrefix(problem, test.want) || (test.want == "") != (problem == "") || strings.Contains(problem, "hunter2") {
				t.Errorf("got %q, want %q", problem, test.want)
			}
		})
	}
}

func TestOutputByDefault(t *testing.T) {
	obj := &v1.RWExternal{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "divide"}}
	if got, want := outputOf(obj).String(), "shop/divide-output"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A Secret of another owner is neither overwritten nor deleted.
func TestForeignSecretIsLeftAlone(t *testing.T) {
	plane := controlplanetest.Start(t, controlplane.Options{CRDs: []string{"config/crd/bases"}})
	user, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/rbac/operator.yaml", "config/rbac/role.yaml")
	start(t, plane, "rwexternal")
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quotient"}, StringData: map[string]string{"quotient": "mine"}}
	if err := user.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	applyAll(t, user, "config/samples/rwexternal.yaml")
	divide := await(t, user, "divide", func(r *v1.RWExternal) bool { return reason(r, condition.Stalled) == step.ReasonOwnedByAnother })
	conditiontest.Check(t, divide)
	if err := user.Delete(t.Context(), divide); err != nil {
		t.Fatal(err)
	}
	awaitGone(t, user, divide)
	var now corev1.Secret
	if err := user.Get(t.Context(), client.ObjectKeyFromObject(foreign), &now); err != nil || now.ResourceVersion != foreign.ResourceVersion {
		t.Errorf("the Secret of another owner: version %s and error %v, want that it is unchanged", now.ResourceVersion, err)
	}
}

// awaitGone waits until an object does not exist any more.
func awaitGone(t *testing.T, user client.WithWatch, obj *v1.RWExternal) {
	t.Helper()
	var list v1.RWExternalList
	if err := user.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	found := false
	for i := range list.Items {
		found = found || list.Items[i].UID == obj.UID
	}
	if !found {
		return
	}
	w, err := user.Watch(t.Context(), &v1.RWExternalList{}, client.InNamespace(obj.Namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if now, ok := event.Object.(*v1.RWExternal); ok && event.Type == watch.Deleted && now.UID == obj.UID {
			return
		}
	}
	t.Fatalf("the watch ended before %s was gone", obj.Name)
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
func await(t *testing.T, user client.WithWatch, name string, done func(*v1.RWExternal) bool) *v1.RWExternal {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // a failure shows the log of the operator
	defer cancel()
	w, err := user.Watch(ctx, &v1.RWExternalList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if obj, ok := event.Object.(*v1.RWExternal); ok && done(obj) {
			return obj
		}
	}
	t.Fatalf("the watch ended before %s was as wanted", name)
	return nil
}

// reason returns the reason of a condition, if the condition is about the present spec.
func reason(obj *v1.RWExternal, kind string) string {
	for _, c := range obj.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == obj.Generation && (kind != condition.Ready || c.Status == metav1.ConditionTrue) {
			return c.Reason
		}
	}
	return ""
}
