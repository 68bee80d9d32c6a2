// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package seed_test runs the controller example of the ctrlkit RFC. The example is in testdata
// because it has a mistake that ctrlkit vet reports: an action that is deferred and never run.
package seed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	apiv1 "github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/api/v1"
	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/manager"
	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden/seed/testdata/controller"
)

// A fakeIndexer registers indexes with a fake client.
type fakeIndexer struct{ *fake.ClientBuilder }

func (f fakeIndexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	f.WithIndex(obj, field, values)
	return nil
}

func newClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(apiv1.AddToScheme(scheme), batchv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := manager.IndexCronJobControllerManager(t.Context(), fakeIndexer{builder}); err != nil {
		t.Fatal(err)
	}
	return builder.Build()
}

func job(name string, owner *apiv1.CronJob) *batchv1.Job {
	yes := true
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{"cronjob": owner.Name},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "controller-kit-demo/v1", Kind: "CronJob", Name: owner.Name, UID: owner.UID, Controller: &yes,
		}},
	}}
}

// TestExample runs the example: the Jobs that the CronJob owns are given to the actions, and no
// others.
func TestExample(t *testing.T) {
	cronJob := &apiv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup", UID: "1"}, Spec: apiv1.CronJobSpec{Schedule: "@hourly"}}
	predecessor := cronJob.DeepCopy()
	predecessor.UID = "0"
	c := newClient(t, cronJob, job("a", cronJob), job("b", cronJob), job("of-its-predecessor", predecessor))

	var lines []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	reconciler := &controller.CronJobController{Client: c, Logger: logger}
	if _, err := reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(cronJob)}); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{
		`"msg"="Listed" "cronjob"={"name"="backup" "namespace"="default"} "action"="ListActiveJobsAndUpdateStatus" "jobs"=2`,
		`"action"="CleanUpOldJobsExceedsHistoryLimits" "jobs"=2`,
		`"action"="RunNextScheduledJob" "schedule"="@hourly"`,
	} {
		if !slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, want) }) {
			t.Errorf("no line of the log has %s:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	var left batchv1.JobList
	if err := c.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	if len(left.Items) != 1 || left.Items[0].Name != "of-its-predecessor" {
		t.Errorf("the Jobs are %v, want only the Job that is not owned", left.Items)
	}
}

// hook records its calls.
type hook struct{ calls []string }

func (h *hook) BeforeAction(ctx context.Context, action string) context.Context {
	h.calls = append(h.calls, "before "+action)
	return ctx
}

func (h *hook) AfterAction(_ context.Context, action string, _ ctrl.Result, err error) {
	if err != nil {
		action += ": " + err.Error()
	}
	h.calls = append(h.calls, "after "+action)
}

// TestOptionsAndTestDouble has a state that cannot be read: the action is not called, but the hooks
// are.
func TestOptionsAndTestDouble(t *testing.T) {
	down := errors.New("down")
	double := &manager.CronJobControllerManagerFakeState{
		Object:  &apiv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup"}},
		JobsErr: down,
	}
	h := &hook{}
	mgr := manager.NewCronJobControllerManager(double, manager.NewCronJobControllerManagerImpl(nil, double.Object), logr.Discard(), ctrlkit.WithHook(h))

	_, err := controller.Workflow(mgr, double.Target()).Run(t.Context())
	if !errors.Is(err, down) {
		t.Fatalf("the workflow ended with %v, want the error of the state", err)
	}
	joined := strings.Join(h.calls, "\n")
	for _, want := range []string{
		"before ListActiveJobsAndUpdateStatus",
		"after ListActiveJobsAndUpdateStatus: ListActiveJobsAndUpdateStatus: reading state jobs: down",
		"after CleanUpOldJobsExceedsHistoryLimits: CleanUpOldJobsExceedsHistoryLimits: reading state jobs: down",
	} {
		if !strings.Contains(joined, want) {
			t.Errorf("the hook was not called with %q but with\n%s", want, joined)
		}
	}

	double.JobsErr, double.Jobs = nil, []batchv1.Job{*job("a", double.Object)}
	jobs, err := double.GetJobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	jobs[0].Name = "changed by the caller"
	if diff := cmp.Diff("a", double.Jobs[0].Name); diff != "" {
		t.Errorf("the caller changed what the double has (-want +got):\n%s", diff)
	}
}

// A lifeCycle is an implementation with the life cycle methods of the RFC.
type lifeCycle struct {
	manager.CronJobControllerManagerImpl
	calls *[]string
}

func (l lifeCycle) BeforeActionRun(action string, _ context.Context, _ logr.Logger) {
	*l.calls = append(*l.calls, "before "+action)
}

func (l lifeCycle) AfterActionRun(action string, _ context.Context, _ logr.Logger) {
	*l.calls = append(*l.calls, "after "+action)
}

func TestLifeCycleMethodsOfTheImplementation(t *testing.T) {
	double := &manager.CronJobControllerManagerFakeState{Object: &apiv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup"}}}
	var calls []string
	impl := lifeCycle{manager.NewCronJobControllerManagerImpl(nil, double.Object), &calls}
	if _, err := manager.NewCronJobControllerManager(double, impl, logr.Discard()).RunNextScheduledJob().Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"before RunNextScheduledJob", "after RunNextScheduledJob"}, calls); diff != "" {
		t.Errorf("the calls (-want +got):\n%s", diff)
	}
}

// An action beside the declared ones has the logger and the hooks of the manager, and hooks reach
// its state.
func TestActionBesideTheDeclaredOnes(t *testing.T) {
	cronJob := &apiv1.CronJob{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "backup", UID: "1"}}
	var lines, calls []string
	logger := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	double := &manager.CronJobControllerManagerFakeState{Object: cronJob, Jobs: []batchv1.Job{{}, {}}}
	hook := hookFunc(func(ctx context.Context, action string) {
		getter, _ := ctrlkit.StateFromContext[manager.CronJobControllerManagerStateGetter](ctx)
		jobs, err := getter.GetJobs(ctx)
		calls = append(calls, fmt.Sprint(action, " of ", getter.Target().Name, " with ", len(jobs), " jobs, ", err))
		ctrlkit.LoggerFromContext(ctx).Info("Hook")
	})
	mgr := manager.NewCronJobControllerManager(double, manager.NewCronJobControllerManagerImpl(nil, cronJob), logger, ctrlkit.WithHook(hook))
	beside := mgr.NewAction("PrintReport", func(_ context.Context, logger logr.Logger) (ctrl.Result, error) {
		logger.Info("Printed")
		return ctrlkit.Exit()
	})
	if _, err := ctrlkit.Join(beside, mgr.ListActiveJobsAndUpdateStatus()).Run(t.Context()); err == nil || err.Error() != "PrintReport: exit" {
		t.Error(err)
	}
	want := []string{"PrintReport of backup with 2 jobs, <nil>", manager.CronJobControllerManagerActionListActiveJobsAndUpdateStatus + " of backup with 2 jobs, <nil>"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("the calls of the hook (-want +got):\n%s", diff)
	}
	for i, want := range []string{
		`"level"=0 "msg"="Hook" "action"="PrintReport"`, `"level"=0 "msg"="Printed" "action"="PrintReport"`,
		`"level"=0 "msg"="Hook" "action"="ListActiveJobsAndUpdateStatus"`,
	} {
		if i >= len(lines) || lines[i] != want {
			t.Errorf("got the lines %q, want line %d to be %q", lines, i, want)
		}
	}
}

// A hookFunc is called before each action.
type hookFunc func(ctx context.Context, action string)

func (f hookFunc) BeforeAction(ctx context.Context, action string) context.Context {
	f(ctx, action)
	return ctx
}
func (hookFunc) AfterAction(context.Context, string, ctrl.Result, error) {}
