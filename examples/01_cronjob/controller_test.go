// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/01_cronjob/manager"
)

func TestWorkflow(t *testing.T) {
	mgr := manager.NewCronJobControllerManager(&manager.CronJobControllerManagerFakeState{Object: &v1.CronJob{}}, nil, testr.New(t))
	const want = "Finally(Join(CleanUpOldJobsExceedsHistoryLimits, " +
		"Sequential(ListActiveJobsAndUpdateStatus, If(true, RunNextScheduledJob))), UpdateCronJobStatus)"
	if diff := cmp.Diff(want, ctrlkit.Describe(workflow(mgr, &v1.CronJob{})).String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

const dueJob = "hello-1777636860" // the Job of 12:01

var errDown = errors.New("the API server is down")

// A reconcileCase is a case of TestReconcile.
type reconcileCase struct {
	name      string
	change    func(*v1.CronJob)
	delete    func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error
	want      reconcile.Result
	wantErr   error
	wantJobs  []string
	wantReady string // the reason of Scheduled
}

var reconcileCases = []reconcileCase{
	{
		name:      "a run is started and an old Job deleted",
		want:      reconcile.Result{RequeueAfter: 50 * time.Second},
		wantJobs:  []string{dueJob},
		wantReady: v1.ReasonScheduled,
	},
	{
		name:      "nothing is started while it is suspended",
		change:    func(c *v1.CronJob) { c.Spec.Suspend = ptr.To(true) },
		wantReady: v1.ReasonSuspended,
	},
	{
		name: "nothing is done any more when it is being deleted",
		change: func(c *v1.CronJob) {
			c.DeletionTimestamp, c.Finalizers = &metav1.Time{Time: noon}, []string{"foregroundDeletion"}
		},
		wantJobs:  []string{"old"},
		wantReady: condition.ReasonNotReached,
	},
	{
		name: "a run is started and the status written although the old Job cannot be deleted",
		delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			return errDown
		},
		wantErr:   errDown,
		wantJobs:  []string{dueJob, "old"},
		wantReady: v1.ReasonScheduled,
	},
	{
		name:      "a mistake in the schedule does not keep the old Job",
		change:    func(c *v1.CronJob) { c.Spec.Schedule = "every day" },
		wantReady: v1.ReasonInvalidSchedule,
	},
}

func TestReconcile(t *testing.T) {
	for _, tt := range reconcileCases {
		t.Run(tt.name, func(t *testing.T) {
			cronJob := newCronJob("default", "* * * * *", func(c *v1.CronJob) {
				c.UID, c.CreationTimestamp = "uid-of-hello", metav1.Time{Time: noon}
				c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](0)
				if tt.change != nil {
					tt.change(c)
				}
			})
			api := newFakeAPI(t, cronJob, completedJobOf(cronJob, "old"))
			controller := &CronJobController{
				Client:    interceptor.NewClient(api, interceptor.Funcs{Delete: tt.delete}),
				APIReader: api,
				Recorder:  events.NewFakeRecorder(10),
				Now:       func() time.Time { return noon.Add(70 * time.Second) },
			}

			engine, err := controller.Engine()
			if err != nil {
				t.Fatal(err)
			}
			got, err := engine.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cronJob)})
			if !errors.Is(err, tt.wantErr) {
				t.Errorf("got error %v, want %v", err, tt.wantErr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("result (-want +got)\n%s", diff)
			}
			var jobs batchv1.JobList
			if err := api.List(t.Context(), &jobs); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.wantJobs, names(jobs.Items)); diff != "" {
				t.Errorf("Jobs (-want +got)\n%s", diff)
			}
			if got := scheduledReason(t, api, cronJob); got != tt.wantReady {
				t.Errorf("the condition Scheduled has the reason %q, want %q", got, tt.wantReady)
			}
		})
	}
}

func TestReconcileOfACronJobThatIsGone(t *testing.T) {
	engine, err := (&CronJobController{Client: newFakeAPI(t)}).Engine()
	if err != nil {
		t.Fatal(err)
	}
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "gone"}}
	if got, err := engine.Reconcile(t.Context(), request); err != nil || !got.IsZero() {
		t.Errorf("got %v and error %v, want neither", got, err)
	}
}

var noon = time.Date(2026, time.May, 1, 12, 0, 0, 0, time.UTC)

// newFakeAPI returns a cluster in memory, with the indexes that the operator registers.
func newFakeAPI(t *testing.T, objs ...client.Object) client.WithWatch {
	t.Helper()
	b := fake.NewClientBuilder().WithScheme(simScheme(t)).WithStatusSubresource(&v1.CronJob{}).WithObjects(objs...)
	if err := manager.IndexCronJobControllerManager(t.Context(), indexer{b}); err != nil {
		t.Fatal(err)
	}
	return b.Build()
}

// An indexer registers indexes with a cluster in memory.
type indexer struct{ b *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	i.b.WithIndex(obj, field, extract)
	return nil
}

func completedJobOf(cronJob *v1.CronJob, name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cronJob.Namespace, Name: name, UID: "uid-of-old", Labels: map[string]string{"cronjob": cronJob.Name},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, v1.GroupVersion.WithKind("CronJob"))},
		},
		Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}},
	}
}

func scheduledReason(t *testing.T, api client.Client, cronJob *v1.CronJob) string {
	t.Helper()
	var now v1.CronJob
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(cronJob), &now); err != nil {
		t.Fatal(err)
	}
	for _, c := range now.Status.Conditions {
		if c.Type == v1.ConditionScheduled {
			return c.Reason
		}
	}
	return ""
}
