// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cronjob_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	before "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/before"
	children "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/children"
	onestep "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/onestep"
	"github.com/ctrlkit/ctrlkit/examples/moving/cronjob/runs"
	steps "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/steps"
	workflow "github.com/ctrlkit/ctrlkit/examples/moving/cronjob/workflow"
	"github.com/ctrlkit/ctrlkit/sim"
)

// crds is the definition of the kind.
const crds = "../../01_cronjob/config/crd/bases"

// A reconciler is what kubebuilder scaffolds. No stage changes its type, its fields or its methods.
type reconciler interface {
	reconcile.Reconciler
	SetupWithManager(mgr ctrl.Manager) error
}

// A clock is the time of a test. As in the tutorial, tests set the time by a field of the reconciler.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

// A stage is a stage of the move. Without a clock of the test, of returns a reconciler without one.
type stage struct {
	name string
	of   func(c client.Client, s *runtime.Scheme, now *clock) reconciler
}

var stages = []stage{
	{"before", func(c client.Client, s *runtime.Scheme, now *clock) reconciler {
		return &before.CronJobReconciler{Client: c, Scheme: s, Clock: clockOf(now)}
	}},
	{"onestep", func(c client.Client, s *runtime.Scheme, now *clock) reconciler {
		return &onestep.CronJobReconciler{Client: c, Scheme: s, Clock: clockOf(now)}
	}},
	{"steps", func(c client.Client, s *runtime.Scheme, now *clock) reconciler {
		return &steps.CronJobReconciler{Client: c, Scheme: s, Clock: clockOf(now)}
	}},
	{"children", func(c client.Client, s *runtime.Scheme, now *clock) reconciler {
		return &children.CronJobReconciler{Client: c, Scheme: s, Clock: clockOf(now)}
	}},
	{"workflow", func(c client.Client, s *runtime.Scheme, now *clock) reconciler {
		return &workflow.CronJobReconciler{Client: c, Scheme: s, Clock: clockOf(now)}
	}},
}

// clockOf returns a clock, nil if there is none.
func clockOf(now *clock) runs.Clock {
	if now == nil {
		return nil
	}
	return now
}

// forStages runs a test for each stage, in virtual time that begins at midnight.
func forStages(t *testing.T, test func(t *testing.T, s stage)) {
	t.Helper()
	for _, s := range stages {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, s) })
		})
	}
}

// A world is an API server in memory, and a manager. What kubebuilder scaffolds has envtest instead.
type world struct {
	t      *testing.T
	client client.WithWatch // of the test, not of the manager
	mgr    ctrl.Manager
	full   bool // no Job can be created by the client of direct
}

var errFull = errors.New("exceeded quota: no more Jobs")

func newWorld(t *testing.T) *world {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	server := sim.NewServer(sim.ServerOptions{Now: time.Now})
	w := &world{t: t}
	data, err := os.ReadFile(crds + "/batch.ctrlkit.dev_cronjobs.yaml")
	w.must(err)
	definition := &apiextensionsv1.CustomResourceDefinition{}
	w.must(yaml.UnmarshalStrict(data, definition))
	w.must(server.Install(definition))
	scheme := exampletest.NewScheme(t, v1.AddToScheme)
	w.client, err = client.NewWithWatch(server.Config(), client.Options{Scheme: scheme})
	w.must(err)
	w.mgr, err = ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	w.must(err)
	return w
}

// start starts the manager, and stops it with the test.
func (w *world) start() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.mgr.Start(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
	w.settle()
}

// settle lets a second pass, in which what was caused happens.
func (w *world) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

var key = client.ObjectKey{Namespace: "default", Name: "hello"}

func newCronJob() *v1.CronJob {
	return &v1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: v1.CronJobSpec{
		Schedule: "0 * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: newJobSpec()},
	}}
}

func newJobSpec() batchv1.JobSpec {
	return batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure, Containers: []corev1.Container{{Name: "hello", Image: "example.com/hello:1"}},
	}}}
}

func (w *world) cronJob() *v1.CronJob {
	w.t.Helper()
	cronJob := &v1.CronJob{}
	w.must(w.client.Get(w.t.Context(), key, cronJob))
	return cronJob
}

// jobs returns the names of all Jobs.
func (w *world) jobs() []string {
	w.t.Helper()
	list := &batchv1.JobList{}
	w.must(w.client.List(w.t.Context(), list))
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	return names
}

// finish ends a Job, as the controller of Jobs does.
func (w *world) finish(name string, as batchv1.JobConditionType) {
	w.t.Helper()
	job := &batchv1.Job{}
	w.must(w.client.Get(w.t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: name}, job))
	first := map[batchv1.JobConditionType]batchv1.JobConditionType{batchv1.JobComplete: batchv1.JobSuccessCriteriaMet, batchv1.JobFailed: batchv1.JobFailureTarget}
	for _, c := range []batchv1.JobConditionType{first[as], as} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	now := metav1.Now()
	job.Status.Active = 0
	if job.Status.StartTime == nil {
		job.Status.StartTime = &now
	}
	if as == batchv1.JobComplete {
		job.Status.CompletionTime = &now
	}
	w.must(w.client.Status().Update(w.t.Context(), job))
}

// reconcilerOf creates a CronJob, and returns the reconciler of a stage that the test calls itself.
func (w *world) reconcilerOf(s stage, now *clock, change ...func(*v1.CronJobSpec)) reconciler {
	w.t.Helper()
	c, cronJob := w.direct(), newCronJob()
	for _, f := range change {
		f(&cronJob.Spec)
	}
	w.must(w.client.Create(w.t.Context(), cronJob))
	w.settle()
	return s.of(c, c.Scheme(), now)
}

// keepsNone has the limit of the history be 0.
func keepsNone(spec *v1.CronJobSpec) { spec.SuccessfulJobsHistoryLimit = new(int32(0)) }

// direct starts the manager, and returns a client for a reconciler that the test calls itself. As
// that of a scaffolded suite, it reads from the API server. It lists from the cache, because the API
// server does not have the index of Jobs.
func (w *world) direct() client.Client {
	w.t.Helper()
	w.must(w.mgr.GetFieldIndexer().IndexField(w.t.Context(), &batchv1.Job{}, runs.OwnerField, runs.OwnerOf))
	w.start()
	return interceptor.NewClient(w.client, interceptor.Funcs{
		List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return w.mgr.GetClient().List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, options ...client.CreateOption) error {
			if w.full {
				return errFull
			}
			return c.Create(ctx, obj, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, is := obj.(*batchv1.Job); is && w.full {
				return errFull
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
}
