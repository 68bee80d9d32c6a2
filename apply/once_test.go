// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/failure"
)

const (
	completeJob = `{"startTime":"2030-01-01T00:00:00Z","completionTime":"2030-01-01T00:00:01Z","succeeded":1,"uncountedTerminatedPods":{},
		"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True","lastTransitionTime":"2030-01-01T00:00:01Z"}]}`
	failedJob = `{"startTime":"2030-01-01T00:00:00Z","failed":2,"uncountedTerminatedPods":{},"conditions":[
		{"type":"FailureTarget","status":"True","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit"},
		{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","message":"Job has reached the specified backoff limit","lastTransitionTime":"2030-01-01T00:00:01Z"}]}`
)

// onceOperator keeps a migration with a changeable image, and its Shop.
func onceOperator(t *testing.T, image *string, change func(job *batchv1.Job)) (*operator, *Shop) {
	t.Helper()
	return testOperator(t, func(_ *Shop, set *apply.Set) {
		if *image == "" {
			return
		}
		job := newJob("migration", *image)
		if change != nil {
			change(job)
		}
		set.Add(job, apply.Once)
	}, apply.Owns(&batchv1.Job{}))
}

// job describes the Job: its image and its time to live.
func (o *operator) job() string {
	o.t.Helper()
	job := &batchv1.Job{}
	if !o.get(job, "migration") {
		return "-"
	}
	text := job.Spec.Template.Spec.Containers[0].Image
	if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil {
		text += fmt.Sprintf(" for %d s", *ttl)
	}
	if job.DeletionTimestamp != nil {
		text += " deleted"
	}
	return text
}

func migrationJob() *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "migration"}}
}

// addPod gives the Job a Pod that takes its time to end.
func (o *operator) addPod() {
	o.t.Helper()
	job := migrationJob()
	o.get(job, job.Name)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "migration-1", Finalizers: []string{"example.com/hold"}}, Spec: newJob("", "tool").Spec.Template.Spec}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	o.create(pod)
}

// endPod lets the Pod end.
func (o *operator) endPod() {
	o.t.Helper()
	o.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "migration-1"}}, `{"metadata":{"finalizers":null}}`)
}

func TestOnceRunsOncePerContent(t *testing.T) {
	image, retries := "tool:1", int32(1)
	o, shop := onceOperator(t, &image, func(job *batchv1.Job) {
		job.Spec.TTLSecondsAfterFinished, job.Spec.BackoffLimit = ptr.To[int32](60), &retries
	})
	check := func(when, job, condition string) {
		t.Helper()
		o.settle(shop)
		if got := o.job(); got != job {
			t.Errorf("%s: the Job is %q, want %q", when, got, job)
		}
		if got := o.condition(shop); got != condition {
			t.Errorf("%s: condition %q, want %q", when, got, condition)
		}
	}
	check("at first", "tool:1", "False NotAllReady: 0 of 1 ready: Job migration: Job not started") // its time to live is held back
	o.setStatus(migrationJob(), completeJob)
	check("complete", "tool:1 for 60 s", "True AllReady")
	o.delete(migrationJob())
	check("deleted when its time was over", "-", "True AllReady")
	retries = 3
	check("with another number of retries", "-", "True AllReady")
	image = "tool:2"
	check("with another content", "tool:2", "False NotAllReady: 0 of 1 ready: Job migration: Job not started")
	o.setStatus(migrationJob(), completeJob)
	check("complete", "tool:2 for 60 s", "True AllReady")
	image = "tool:1"
	check("with the first content again", "tool:2 for 60 s", "True AllReady")
	if plan := o.restartedWrites(shop); len(plan) > 0 {
		t.Errorf("a restarted operator writes %v", plan)
	}
}

// restartedWrites returns what a new process of the operator writes.
func (o *operator) restartedWrites(shop *Shop) []string {
	o.t.Helper()
	o.start()
	o.takeWrites()
	if err := o.reconcile(shop); err != nil {
		o.t.Fatalf("reconciling after a restart: %v", err)
	}
	return o.takeWrites()
}

func TestOnceSupersedesWhatRuns(t *testing.T) {
	image := "tool:1"
	o, shop := onceOperator(t, &image, nil)
	o.settle(shop)
	o.setStatus(migrationJob(), `{"startTime":"2030-01-01T00:00:00Z","active":1,"uncountedTerminatedPods":{}}`)
	o.addPod()
	image = "tool:2"
	o.settle(shop)
	if got := o.job(); got != "tool:1 deleted" {
		t.Errorf("while its Pods end, the Job is %q", got)
	}
	o.endPod()
	o.settle(shop)
	if got := o.job(); got != "tool:2" {
		t.Errorf("then it is %q", got)
	}
	image = "tool:1" // which has not completed
	o.settle(shop)
	if got := o.job(); got != "tool:1" {
		t.Errorf("with the first content again it is %q", got)
	}
}

// A Job that has completed while the operator was down is noted before the next one takes its name.
func TestOnceNotesWhatItHasNotSeen(t *testing.T) {
	image := "tool:1"
	o, shop := onceOperator(t, &image, nil)
	o.settle(shop)
	o.setStatus(migrationJob(), completeJob)
	image = "tool:2"
	o.settle(shop)
	if got := o.job(); got != "tool:2" {
		t.Fatalf("the Job is %q", got)
	}
	image = "tool:1"
	o.mustSettle(shop)
	if got := o.job(); got != "tool:2" {
		t.Errorf("the first content runs again: the Job is %q", got)
	}
	image = ""
	o.setStatus(migrationJob(), completeJob)
	o.mustSettle(shop)
	if got := o.job(); got != "-" {
		t.Errorf("a Job that has left the set is %q", got)
	}
	image = "tool:2"
	o.mustSettle(shop)
	if got := o.job(); got != "-" {
		t.Errorf("what completed before it left the set runs again: %q", got)
	}
}

func TestOnceThatFails(t *testing.T) {
	image := "tool:1"
	o, shop := onceOperator(t, &image, func(job *batchv1.Job) { job.Spec.TTLSecondsAfterFinished = ptr.To[int32](0) })
	o.settle(shop)
	o.setStatus(migrationJob(), failedJob)
	err := o.settle(shop)
	classified := failure.Classify(err)
	if classified.Class != failure.ClassTerminal || classified.Reason != apply.ReasonJobFailed || !strings.Contains(classified.Remedy, "kubectl delete job migration -n default") {
		t.Errorf("%v: class %v, reason %s, remedy %q", err, classified.Class, classified.Reason, classified.Remedy)
	}
	if got, want := o.condition(shop), "False JobFailed: Job default/migration has failed: Job has reached the specified backoff limit: "+classified.Remedy; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
	if got := o.job(); got != "tool:1" {
		t.Errorf("the failed Job is %q: its Pods say why it failed", got)
	}
	o.delete(migrationJob()) // as the remedy says
	o.settle(shop)
	if got := o.job(); got != "tool:1" {
		t.Errorf("run again by hand, the Job is %q", got)
	}
	o.setStatus(migrationJob(), completeJob)
	o.mustSettle(shop)
	if got := o.condition(shop); got != "True AllReady" {
		t.Errorf("condition %q", got)
	}
}

// A cache that has neither the Job nor what its owner remembers starts nothing.
func TestOnceWithAStaleCache(t *testing.T) {
	image := "tool:1"
	o, shop := onceOperator(t, &image, nil)
	o.settle(shop)
	o.setStatus(migrationJob(), completeJob)
	stale := &Shop{}
	o.get(stale, shop.Name)
	o.mustSettle(shop)
	o.delete(migrationJob())
	o.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
		if shop, ok := obj.(*Shop); ok {
			*shop = *stale.DeepCopyObject().(*Shop) //nolint:errcheck // it is one
			return nil
		}
		return c.Get(ctx, key, obj, opts...)
	}
	o.start()
	for range 3 {
		_ = o.reconcile(shop)
	}
	if got := o.job(); got != "-" {
		t.Errorf("the Job runs again: %q", got)
	}
}

func TestOnceMistakes(t *testing.T) {
	for _, tt := range []struct {
		items []any
		want  string
	}{
		{[]any{newConfigMap("a"), apply.Once}, "apply.Once is for Jobs"},
		{[]any{newJob("a", "b"), apply.Once, apply.CreateOnly}, "apply.Once excludes apply.CreateOnly"},
	} {
		o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(tt.items...) }, apply.Owns(&batchv1.Job{}, newConfigMap("")))
		if err := o.settle(shop); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q", err, tt.want)
		}
	}
	image := "tool:1"
	o, shop := onceOperator(t, &image, nil)
	o.patch(&Shop{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, `{"metadata":{"annotations":{"once.apply.ctrlkit.dev/Parts":"broken"}}}`)
	if err := o.settle(shop); err == nil || !strings.Contains(err.Error(), "Jobs would run again") || o.job() != "-" {
		t.Errorf("%v, and the Job is %q", err, o.job())
	}
}

// What was an ordinary Job of the set does not run again because it gets the policy.
func TestOnceOfAnOrdinaryJob(t *testing.T) {
	var options []any
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(append(options, newJob("migration", "tool:1"))...)
	}, apply.Owns(&batchv1.Job{}))
	o.settle(shop)
	o.setStatus(migrationJob(), completeJob)
	o.mustSettle(shop)
	first := &batchv1.Job{}
	o.get(first, "migration")
	options = []any{apply.Once}
	o.mustSettle(shop)
	now := &batchv1.Job{}
	if !o.get(now, "migration") || now.UID != first.UID {
		t.Error("the Job ran again")
	}
	o.delete(migrationJob())
	o.mustSettle(shop)
	if got := o.job(); got != "-" {
		t.Errorf("the Job ran again: %q", got)
	}
}

// The user who does not let a Job be deleted is heard.
func TestOnceThatMayNotBeDeleted(t *testing.T) {
	image := "tool:1"
	o, shop := onceOperator(t, &image, nil)
	o.settle(shop)
	o.patch(migrationJob(), `{"metadata":{"annotations":{"policy.ctrlkit.dev/allow":"observe,create,update"}}}`)
	image = "tool:2"
	err := o.settle(shop)
	if got := o.job(); got != "tool:1" || failure.Classify(err).Reason != apply.ReasonImmutableField {
		t.Errorf("the Job is %q: %v", got, err)
	}
}
