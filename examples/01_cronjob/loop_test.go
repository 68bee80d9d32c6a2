// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// A CronJob that runs every 20 seconds fills and empties the list of its active Jobs for ever, as
// it must: that is no hot loop. The user has written the spec, and an hour passes.
func TestNoHotLoopInAnHour(t *testing.T) {
	rings.Test(t, "simulates an hour")
	options := envtest.CRDInstallOptions{Paths: []string{"config/crd/bases"}, ErrorIfPathMissing: true}
	exampletest.Must(t, envtest.ReadCRDFiles(&options))
	synctest.Test(t, func(t *testing.T) {
		server := sim.NewServer(sim.ServerOptions{Now: time.Now})
		exampletest.Must(t, server.Install(options.CRDs...))
		user, err := client.New(server.Config(), client.Options{Scheme: simScheme(t), FieldOwner: "kubectl-client-side-apply"})
		exampletest.Must(t, err)
		startManager(t, server)
		cronJob := &v1.CronJob{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "default"}, Spec: v1.CronJobSpec{
			Schedule: "@every 20s", SuccessfulJobsHistoryLimit: ptr.To[int32](1),
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "busybox:1"}},
			}}}},
		}}
		exampletest.Must(t, user.Create(t.Context(), cronJob))
		completed := 0
		for range int(time.Hour / (5 * time.Second)) {
			time.Sleep(5 * time.Second)
			completed += completeJobs(t, user)
			exampletest.Must(t, user.Get(t.Context(), client.ObjectKeyFromObject(cronJob), cronJob))
			if i := slices.IndexFunc(cronJob.Status.Conditions, func(c metav1.Condition) bool { return c.Reason == step.ReasonHotLoop }); i >= 0 {
				t.Fatalf("after %d Jobs: %s", completed, cronJob.Status.Conditions[i].Message)
			}
		}
		if completed < 175 || completed > 181 {
			t.Errorf("%d Jobs in an hour, want one every 20 seconds", completed)
		}
	})
}

// startManager starts the operator, which ends with the test.
func startManager(t *testing.T, server *sim.Server) {
	t.Helper()
	options := ctrl.Options{Logger: logr.Discard(), HealthProbeBindAddress: "0"}
	options.Metrics.BindAddress = "0"
	options.Controller.SkipNameValidation = ptr.To(true)
	mgr, err := cronJobs(time.Now).Manager(server.Config(), options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
}

// completeJobs does what the Job controller does with the Jobs that run. It returns how many there
// were.
func completeJobs(t *testing.T, user client.Client) (completed int) {
	t.Helper()
	jobs := &batchv1.JobList{}
	exampletest.Must(t, user.List(t.Context(), jobs))
	for _, job := range jobs.Items {
		if job.Status.CompletionTime != nil {
			continue
		}
		now := metav1.Now()
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}
		exampletest.Must(t, user.Status().Update(t.Context(), &job))
		completed++
	}
	return completed
}
