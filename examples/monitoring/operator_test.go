// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

var (
	runOnce sync.Once
	errRun  error
)

// seriesOf runs an operator that does something of everything, and returns the series that it has,
// each with its labels.
func seriesOf(t *testing.T) map[string][]string {
	runOnce.Do(func() { errRun = runOperator() })
	if errRun != nil {
		t.Fatal(errRun)
	}
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	// A loop takes a while, and a ConfigMap has no conditions.
	known := map[string][]string{}
	for _, name := range []string{"ctrlkit_hot_loops_total", "ctrlkit_stalled_objects", "ctrlkit_stalled_oldest_timestamp_seconds"} {
		known[name] = []string{"controller"}
	}
	for _, name := range []string{
		"ctrlkit_objects_unready_oldest_timestamp_seconds", "ctrlkit_objects_deleting", "ctrlkit_objects_deleting_oldest_timestamp_seconds",
		"ctrlkit_time_to_ready_seconds", "ctrlkit_time_to_delete_seconds", "ctrlkit_drifts_total",
	} {
		known[name] = []string{"kind"}
	}
	known["ctrlkit_objects"] = []string{"kind", "ready", "reason", "managed"}
	for _, f := range families {
		var names []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			names = append(names, l.GetName())
		}
		known[f.GetName()] = names
	}
	return known
}

func runOperator() error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	mgr, err := ctrl.NewManager(sim.NewServer(sim.ServerOptions{}).Config(), ctrl.Options{
		LeaderElection: true, LeaderElectionID: "monitoring", LeaderElectionNamespace: "default",
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:0"}, // :8080 may be in use
	})
	if err != nil {
		return err
	}
	if err := operator.Observe(mgr, operator.WithObjects(&corev1.ConfigMap{})); err != nil {
		return err
	}
	failed := &firstFailure{seen: make(chan struct{})}
	engine, err := step.New(step.Options[*corev1.ConfigMap]{Name: "settings", Client: mgr.GetClient(), Observers: append(operator.ObserversOf(mgr), failed)},
		step.Step[*corev1.ConfigMap]{Name: "Work", Do: step.Workflow(func(req *step.Request[*corev1.ConfigMap]) ctrlkit.Action {
			return ctrlkit.NewAction("Label", func(context.Context) (ctrl.Result, error) {
				metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen", "true")
				return ctrlkit.NoRequeue()
			})
		})},
		step.Step[*corev1.ConfigMap]{Name: "Fail", Do: func(_ context.Context, req *step.Request[*corev1.ConfigMap]) error {
			if req.Snapshot().Labels["seen"] == "" {
				return nil
			}
			return errors.New("refused")
		}},
	)
	if err != nil {
		return err
	}
	if err := engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	writer, err := client.New(mgr.GetConfig(), client.Options{})
	if err != nil {
		return err
	}
	if err := writer.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}}); err != nil {
		return err
	}
	select {
	case err := <-ended:
		return errors.Join(errors.New("the operator ended"), err)
	case <-failed.seen:
	}
	stop()
	return <-ended
}

// A firstFailure waits for a reconcile that fails.
type firstFailure struct {
	once sync.Once
	seen chan struct{}
}

func (f *firstFailure) Observe(_ context.Context, entry journal.Entry) {
	if e, ok := entry.Event.(journal.Finished); ok && e.Outcome.Err != nil {
		f.once.Do(func() { close(f.seen) })
	}
}
