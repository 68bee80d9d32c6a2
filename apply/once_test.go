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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
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

// job describes the Job.
func (o *operator) job() string {
	o.t.Helper()
	job := &batchv1.Job{}
	if !o.get(job, "migration") {
		return "-"
	}
	return jobText(job)
}

// jobText returns the image of a Job, and its time to live.
func jobText(job *batchv1.Job) string {
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
