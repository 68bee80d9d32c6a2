// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Explain and metrics see each handler as a step of the controller of its kind.
func TestHandlersAreExplained(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	series, err := metrics.New(registry, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ring := journal.NewRing(journal.RingOptions{})
	observe := func(o *handlers.Options) { o.Observers = []journal.Observer{ring, series} }
	inWorld(t, observe, func(w *world) {
		w.create(newConfigMap("a", nil))
		fails, writes := w.noting("fails"), w.noting("writes")
		fails.OnChange = func(context.Context, *corev1.ConfigMap) error {
			return errors.New("refused")
		}
		writes.OnChange = func(ctx context.Context, _ *corev1.ConfigMap) error {
			err := w.registry.Client().Create(ctx, newSecret("s"))
			return ctrlkit.AsError(ctrl.Result{RequeueAfter: time.Hour}, client.IgnoreAlreadyExists(err))
		}
		w.register(fails, writes)
		w.start()
		time.Sleep(time.Minute) // the backoff of the failure is long now
		w.touch(newConfigMap("a", nil))
		w.settle()
		object := journal.Object{Kind: "ConfigMap", Namespace: "default", Name: "a"}
		report := explanation.FromEntries(object, ring.Entries(object))
		if len(report.Controllers) != 1 || report.Controllers[0].Name != "test-configmap" {
			t.Fatalf("controllers %+v", report.Controllers)
		}
		c := report.Controllers[0]
		steps := make(map[string]explanation.Step)
		for _, s := range c.Steps {
			steps[s.Name] = s
		}
		if got := steps["fails"]; got.Error != "fails: refused" || got.State != explanation.StateFailed {
			t.Errorf("the handler that fails: %+v", got)
		}
		if got, ok := steps["writes"]; !ok || got.Error != "" {
			t.Errorf("the handler that writes: %+v", got)
		}
		var causes []string
		for _, r := range c.Runs {
			causes = append(causes, r.Causes...)
		}
		if got := strings.Join(causes, "; "); !contains(got, "a retry after a failure") || !contains(got, "updated") {
			t.Errorf("causes %q", got)
		}
		if c.Next.IsZero() {
			t.Error("it does not say when the object is tried again")
		}
	})
	expectSeries(t, registry, map[string]string{"controller": "test-configmap", "step": "fails"}, map[string]string{"controller": "test-configmap", "step": "writes"})
}

// expectSeries fails the test for labels that no series has.
func expectSeries(t *testing.T, registry prometheus.Gatherer, all ...map[string]string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range all {
		found := false
		for _, family := range families {
			for _, m := range family.GetMetric() {
				matching := 0
				for _, l := range m.GetLabel() {
					if value, ok := want[l.GetName()]; ok && value == l.GetValue() {
						matching++
					}
				}
				found = found || matching == len(want)
			}
		}
		if !found {
			t.Errorf("no series has %v", want)
		}
	}
}
