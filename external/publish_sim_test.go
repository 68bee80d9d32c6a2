// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

func publishingOperator(mgr ctrl.Manager, _ *sim.Process) error {
	p := &external.Publisher[*Database]{
		Targets: func(db *Database) []external.Target {
			return []external.Target{
				{Secret: db.Spec.Secret},
				{Secret: db.Spec.Secret, Namespace: "shop", Keys: map[string]string{"url": "db://{{.key}}"}},
				{ConfigMap: db.Name, Keys: map[string]string{"name": "{{.name}}"}},
			}
		},
		Elsewhere: true, Public: []string{"name"},
	}
	engine, err := step.New(step.Options[*Database]{Name: "databases", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Finalizer: "test.example.com/databases", SkipUnchanged: true},
		p.Step("Connection"), step.Step[*Database]{Name: "Database", Do: func(ctx context.Context, req *step.Request[*Database]) error {
			details := external.Details{Values: map[string][]byte{"key": []byte(req.Object.Spec.Key), "name": []byte(req.Object.Name)}}
			return p.Publish(ctx, req, details)
		}})
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Database{}))
}

// Whatever goes wrong while what is published changes its value and its name, and is deleted: it is
// where it should be, and nowhere else.
func TestPublishingSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	db := func() *Database {
		return &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: Spec{Secret: "one", Key: "k"}}
	}
	sim.Run(t, sim.Workload{
		Name: t.Name(), Scheme: testkind.Scheme(databases), CRDs: testkind.Files(t, databases), Operator: sim.Manager(publishingOperator),
		Objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{"publish.ctrlkit.dev/from": "default"}}}},
		Script: func(w *sim.World) {
			w.Create(db())
			w.Settle()
			sim.Update(w, db(), func(d *Database) { d.Spec.Key = "n" })
			w.Settle()
			sim.Update(w, db(), func(d *Database) { d.Spec.Secret = "two" })
			w.Settle()
			w.Delete(db())
			w.Settle()
		},
	}, sim.WithPairs(*pairs), sim.WithSample(12))
}
