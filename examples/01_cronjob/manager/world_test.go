// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// A world is a cluster with one CronJob, in memory, and what the operator sees of it.
type world struct {
	t      *testing.T
	logger logr.Logger

	api     client.WithWatch // the cluster
	faults  interceptor.Funcs
	events  *events.FakeRecorder
	writes  []string // the writes that the operator has tried, as "create Job hello-1"
	now     time.Time
	cronJob *v1.CronJob   // as the cache has it
	jobs    []batchv1.Job // as the cache has them
}

const created = "2026-05-01T12:00:00Z"

// newWorld returns a world with a CronJob that was created at 12:00:00 and is due every minute. It
// is 12:00:30.
func newWorld(t *testing.T, change ...func(*v1.CronJob)) *world {
	t.Helper()
	cronJob := &v1.CronJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "hello", UID: "uid-of-hello", Generation: 1,
			CreationTimestamp: metav1.NewTime(at(created)),
		},
		Spec: v1.CronJobSpec{
			Schedule: "* * * * *",
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "hello"}, Annotations: map[string]string{"team": "a"}},
				Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers:    []corev1.Container{{Name: "hello", Image: "busybox"}},
				}}},
			},
		},
	}
	for _, f := range change {
		f(cronJob)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, logger: testr.New(t), now: at("2026-05-01T12:00:30Z"), events: events.NewFakeRecorder(100)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1.CronJob{}).WithObjects(cronJob).Build()
	w.refresh()
	return w
}

// addJob adds a Job of the CronJob to the cluster and, unless it is forgotten there, to the cache.
func (w *world) addJob(scheduled string, change ...func(*batchv1.Job)) *batchv1.Job {
	w.t.Helper()
	job, err := newJob(w.cronJob, at(scheduled), w.api.Scheme())
	if err != nil {
		w.t.Fatal(err)
	}
	job.UID = types.UID("uid-of-" + job.Name)
	job.CreationTimestamp = metav1.NewTime(at(scheduled))
	for _, f := range change {
		f(job)
	}
	if err := w.api.Create(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
	w.jobs = append(w.jobs, *job)
	return job
}

func finished(as batchv1.JobConditionType) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: as, Status: corev1.ConditionTrue}}
	}
}

func startedAt(t string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Status.StartTime = &metav1.Time{Time: at(t)} }
}

// refresh lets the cache catch up with the cluster.
func (w *world) refresh() {
	w.t.Helper()
	w.cronJob = &v1.CronJob{}
	if err := w.api.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "hello"}, w.cronJob); err != nil {
		w.t.Fatal(err)
	}
	w.jobs = w.clusterJobs()
}

// clusterJobs returns the Jobs of the cluster, in the order of their names.
func (w *world) clusterJobs() []batchv1.Job {
	w.t.Helper()
	var list batchv1.JobList
	if err := w.api.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

func (w *world) jobNames() []string {
	var names []string
	for _, job := range w.clusterJobs() {
		names = append(names, job.Name)
	}
	return names
}

// status returns the status of the CronJob in the cluster.
func (w *world) status() v1.CronJobStatus {
	w.t.Helper()
	var cronJob v1.CronJob
	if err := w.api.Get(w.t.Context(), client.ObjectKeyFromObject(w.cronJob), &cronJob); err != nil {
		w.t.Fatal(err)
	}
	return cronJob.Status
}

// run reconciles the CronJob with a workflow, and returns what the workflow has returned, or what
// has failed when the status was saved.
func (w *world) run(workflow func(*CronJobControllerManager) ctrlkit.Action) (ctrl.Result, error) {
	w.t.Helper()
	return w.reconcile(func() *CronJobControllerManagerFakeState { return &CronJobControllerManagerFakeState{Jobs: w.jobs} }, workflow)
}

func (w *world) reconcile(
	state func() *CronJobControllerManagerFakeState, workflow func(*CronJobControllerManager) ctrlkit.Action,
) (result ctrl.Result, err error) {
	engine, newErr := step.New(step.Options[*v1.CronJob]{Name: "cronjob", Client: w.client(), Recorder: w.events}, step.Step[*v1.CronJob]{Name: "Runs", Conditions: Conditions(), Do: func(ctx context.Context, req *step.Request[*v1.CronJob]) error {
		s := state()
		s.Object = req.Object
		impl := NewCronJobControllerManagerImpl(req, w.api, w.events, w.now)
		result, err = workflow(NewCronJobControllerManager(s, impl, w.logger)).Run(ctx)
		return ctrlkit.AsError(result, err)
	}})
	if newErr != nil {
		w.t.Fatal(newErr)
	}
	if _, saveErr := engine.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cronJob)}); err == nil {
		err = saveErr
	}
	return result, err
}

// client is what the operator writes with: the cluster, with the faults of this world, and with a
// note of every write.
func (w *world) client() client.Client {
	counted := interceptor.NewClient(w.api, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if cronJob, ok := obj.(*v1.CronJob); ok { // from the cache
				w.cronJob.DeepCopyInto(cronJob)
				return nil
			}
			return c.Get(ctx, key, obj, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			w.writes = append(w.writes, "create "+obj.GetName())
			obj.SetUID(types.UID("uid-of-" + obj.GetName())) // the in-memory cluster does not
			return c.Create(ctx, obj, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.writes = append(w.writes, "delete "+obj.GetName())
			return c.Delete(ctx, obj, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			w.writes = append(w.writes, "patch "+sub+" "+obj.GetName())
			return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
		},
	})
	return interceptor.NewClient(counted, w.faults)
}

// must reconciles the CronJob with a workflow, which does not fail.
func (w *world) must(workflow func(*CronJobControllerManager) ctrlkit.Action) ctrl.Result {
	w.t.Helper()
	result, err := w.run(workflow)
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// wrote checks all that the operator has tried to write.
func (w *world) wrote(want ...string) {
	w.t.Helper()
	same(w.t, "writes", want, w.writes)
}

// scheduledLast checks the last time in the schedule that the status has.
func (w *world) scheduledLast(want string) {
	w.t.Helper()
	same(w.t, "last schedule time", want, text(w.status().LastScheduleTime.Time))
}

func same[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// takeEvents returns the events since the last call.
func (w *world) takeEvents() []string {
	var all []string
	for {
		select {
		case e := <-w.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}
