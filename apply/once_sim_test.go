// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/player"
	"github.com/ctrlkit/ctrlkit/step"
)

// ledgerJob plays Jobs: each completes, writes that down in a ConfigMap of its content, and is
// deleted at once if it has a time to live. A second run of the same content leaves a ConfigMap more.
func ledgerJob() player.Player {
	return player.New(func(s *player.Stage, job *batchv1.Job) error {
		switch {
		case job.DeletionTimestamp != nil:
			return nil
		case job.Status.CompletionTime != nil && job.Spec.TTLSecondsAfterFinished != nil:
			return s.Delete(job)
		case job.Status.CompletionTime != nil:
			return nil
		}
		ran := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "ran-" + job.Annotations["apply.ctrlkit.dev/once"]}}
		err := s.Create(ran)
		for n := 2; apierrors.IsAlreadyExists(err); n++ {
			ran = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: fmt.Sprintf("ran-%s-time-%d", job.Annotations["apply.ctrlkit.dev/once"], n)}}
			err = s.Create(ran)
		}
		if err != nil {
			return err
		}
		now := metav1.Now()
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
		job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		return s.UpdateStatus(job)
	})
}

// A crash at any write, a lost answer or a stale cache neither runs a Job twice nor leaves it out.
func TestOnceSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	file := filepath.Join(t.TempDir(), "shops.yaml")
	definition := shopDefinition()
	definition.APIVersion, definition.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	data, err := yaml.Marshal(definition)
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	must(t, err)
	shop := &Shop{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}, Spec: ShopSpec{Size: 1}}
	sim.Run(t, sim.Workload{
		Name: t.Name(), Scheme: scheme, CRDs: []string{file}, Players: player.Defaults().With(ledgerJob()),
		Operator: sim.Manager(func(mgr ctrl.Manager, _ *sim.Process) error {
			engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()},
				apply.Children("Parts", func(_ context.Context, req *step.Request[*Shop], set *apply.Set) error {
					job := newJob("migration", fmt.Sprintf("tool:%d", req.Object.Spec.Size))
					job.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
					set.Add(job, apply.Once, apply.Wave(-1))
					set.Add(newConfigMap("config", "size", fmt.Sprint(req.Object.Spec.Size)))
					return nil
				}, apply.Owns(&batchv1.Job{}, &corev1.ConfigMap{})))
			if err != nil {
				return err
			}
			return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Shop{}))
		}),
		Script: func(w *sim.World) {
			w.Create(shop)
			w.Settle()
			for _, size := range []int{2, 1} {
				sim.Update(w, shop, func(s *Shop) { s.Spec.Size = size })
				w.Settle()
			}
		},
	}, sim.WithPairs(0), sim.WithSample(20))
}
