// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/step"
)

// A whole program: it labels ConfigMaps. A test makes the same manager with labels.Manager.
func Example() {
	label := step.Step[*corev1.ConfigMap]{Name: "Label", Do: func(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
		metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "example.com/seen", "true")
		return nil
	}}
	labels := operator.Operator{
		Name: "labels.example.com",
		Controls: []func(ctrl.Manager) error{func(mgr ctrl.Manager) error {
			return step.Control(mgr, step.Options[*corev1.ConfigMap]{Name: "labels"}, label)
		}},
	}
	main := func() { labels.Main() }
	_ = main

	mgr, err := labels.Manager(&rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(operator.ObserversOf(mgr)), "observer")
	// Output: 1 observer
}

// The manager knows the types, is observed before controllers are added, and has what Options say.
func TestOperatorManager(t *testing.T) {
	withRegistry(t)
	kind := testkind.Of[struct{}, testkind.Status]("Database")
	config, given := &rest.Config{Host: "http://127.0.0.1:1"}, ctrl.Options{Scheme: runtime.NewScheme()}
	given.Metrics.BindAddress = "0"
	observers := 0
	o := operator.Operator{
		Name:    "databases.example.com",
		Types:   []func(*runtime.Scheme) error{func(s *runtime.Scheme) error { *s = *testkind.Scheme(kind); return nil }},
		Observe: []operator.Option{},
		Options: func(options *ctrl.Options) { options.Controller.MaxConcurrentReconciles = 7 },
		Controls: []func(ctrl.Manager) error{func(mgr ctrl.Manager) error {
			observers = len(operator.ObserversOf(mgr))
			return nil
		}},
	}
	mgr, err := o.Manager(config, given)
	if err != nil {
		t.Fatal(err)
	}
	gvk, err := mgr.GetClient().GroupVersionKindFor(&Database{})
	if err != nil || gvk.Kind != "Database" || len(given.Scheme.AllKnownTypes()) != 0 {
		t.Errorf("the kind is %s (%v); the given scheme has %d types", gvk, err, len(given.Scheme.AllKnownTypes()))
	}
	if observers != 1 || operator.ShardOf(mgr) != nil || mgr.GetControllerOptions().MaxConcurrentReconciles != 7 {
		t.Errorf("%d observers, the shard %v, and %d workers", observers, operator.ShardOf(mgr), mgr.GetControllerOptions().MaxConcurrentReconciles)
	}
	errTypes := errors.New("no types")
	o.Types = []func(*runtime.Scheme) error{func(*runtime.Scheme) error { return errTypes }}
	if _, err := o.Manager(config, given); !errors.Is(err, errTypes) || err.Error() != "registering types: no types" {
		t.Errorf("error %v", err)
	}
}
