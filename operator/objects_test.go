// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/operator"
)

type Database = testkind.Object[struct{}, testkind.Status]

// The series are those of what is in the cache, and of what has happened to it.
func TestObjects(t *testing.T) {
	withRegistry(t)
	synctest.Test(t, func(t *testing.T) {
		ctrl.SetLogger(logr.Discard())
		kind := testkind.Of[struct{}, testkind.Status]("Database")
		server := apiserver.New(apiserver.Options{Seed: 1, Now: time.Now})
		must(t, server.Install(kind.Definition()))
		user, err := client.New(server.Config(), client.Options{Scheme: testkind.Scheme(kind)})
		must(t, err)
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		set := func(db *Database, conditions ...metav1.Condition) {
			t.Helper()
			must(t, user.Get(ctx, client.ObjectKeyFromObject(db), db))
			for i := range conditions {
				conditions[i].LastTransitionTime = metav1.Now()
			}
			db.Status.Conditions = conditions
			must(t, user.Status().Update(ctx, db))
		}
		database := func(name string, finalizers ...string) *Database {
			db := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: finalizers}}
			must(t, user.Create(ctx, db))
			return db
		}
		mgr, err := ctrl.NewManager(server.Config(), ctrl.Options{Scheme: testkind.Scheme(kind), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
		must(t, err)
		must(t, operator.Observe(mgr, operator.WithObjects(&Database{})))
		ended := make(chan error, 1)
		go func() { ended <- mgr.Start(ctx) }()
		time.Sleep(time.Minute) // 946684860
		first, second, third := database("first"), database("second", "example.com/kept"), database("third")
		time.Sleep(90 * time.Second)
		set(first, is("Ready", "True", "Ready"), is("Managed", "False", "Skipped"))
		set(second, is("Ready", "False", "Waiting"), is("Drifted", "True", "Drifted"))
		must(t, user.Delete(ctx, second))
		must(t, user.Delete(ctx, third))
		time.Sleep(20 * time.Second)
		expect(t, `
ctrlkit_objects{kind="Database.test.example.com",managed="",ready="False",reason="Waiting"} 1
ctrlkit_objects{kind="Database.test.example.com",managed="Skipped",ready="True",reason="Ready"} 1
ctrlkit_objects_deleting{kind="Database.test.example.com"} 1
ctrlkit_objects_deleting_oldest_timestamp_seconds{kind="Database.test.example.com"} 9.4668495e+08
ctrlkit_objects_unready_oldest_timestamp_seconds{kind="Database.test.example.com"} 9.4668495e+08
ctrlkit_drifts_total{kind="Database.test.example.com"} 1
`)
		must(t, user.Get(ctx, client.ObjectKeyFromObject(second), second))
		second.Finalizers = nil
		must(t, user.Update(ctx, second))
		time.Sleep(time.Second)
		for name, want := range map[string]string{"ctrlkit_time_to_ready_seconds": "90 1", "ctrlkit_time_to_delete_seconds": "20 1"} {
			if got := sumOf(t, name); got != want {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		stop()
		must(t, <-ended)
	})
}

func is(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expect compares the series that the text has, without their help.
func expect(t *testing.T, want string) {
	t.Helper()
	var got strings.Builder
	families, err := ctrlmetrics.Registry.Gather()
	must(t, err)
	for _, f := range families {
		if !strings.Contains(want, "\n"+f.GetName()+"{") {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&got, "%s{%s} %v\n", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
		}
	}
	sorted := func(text string) []string { return slices.Sorted(strings.Lines(strings.TrimPrefix(text, "\n"))) }
	if diff := cmp.Diff(sorted(want), sorted(got.String())); diff != "" {
		t.Error(diff)
	}
}

// sumOf returns the sum and the number of what a histogram has.
func sumOf(t *testing.T, name string) string {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			h := f.GetMetric()[0].GetHistogram()
			return fmt.Sprint(h.GetSampleSum(), " ", h.GetSampleCount())
		}
	}
	return "none"
}
