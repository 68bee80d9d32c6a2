// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The operator ends in the same state whatever goes wrong: crashes before and after each write,
// lost answers, stale caches, other clients that interfere.
func TestSurvivesEverything(t *testing.T) {
	exampletest.Simulate(t, sim.Workload{
		Scheme: simScheme(t), CRDs: []string{"config/crd/bases"},
		Operator: func(ctx context.Context, p *sim.Process) error {
			mgr, err := cronJobs(time.Now).Manager(p.Config(), p.ManagerOptions())
			if err != nil {
				return err
			}
			return mgr.Start(ctx)
		},
		Script: jobsOfAMorning,
	},
		sim.WithoutFault(sim.FaultRecreate, "a CronJob that is created again does not make up for runs that were due before"),
		sim.WithoutFault(sim.FaultDeleteAndCreate, "a CronJob that is created again does not make up for runs that were due before"))
}

// jobsOfAMorning is a CronJob that starts a Job every two hours.
func jobsOfAMorning(w *sim.World) {
	cronJob := &v1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"}, Spec: v1.CronJobSpec{
		Schedule: "0 */2 * * *", SuccessfulJobsHistoryLimit: ptr.To[int32](1),
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox:1"}},
		}}}},
	}}
	w.Create(cronJob)
	w.Settle()
	for run := 1; run <= 2; run++ {
		w.SleepUntil(time.Duration(2*run)*time.Hour + time.Minute)
		w.Settle()
	}
	sim.Update(w, cronJob, func(c *v1.CronJob) { c.Spec.Suspend = ptr.To(true) })
	w.Settle()
	w.Delete(cronJob)
	w.Settle()
}

func simScheme(t *testing.T) *runtime.Scheme { return exampletest.NewScheme(t, v1.AddToScheme) }
