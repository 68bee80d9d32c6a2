// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
)

// A stage is a namespace of a real control plane with an operator that works in this namespace
// alone.
type stage struct {
	t         *testing.T
	client    client.WithWatch // the user's
	namespace string

	reconciles atomic.Int64 // begun by the operator
	requests   atomic.Int64 // of the operator, without watches
}

// newStage starts an operator in a new namespace. Both end with the test.
func newStage(t *testing.T, plane *controlplane.ControlPlane) *stage {
	t.Helper()
	s := &stage{t: t, client: newUser(t, plane)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "story-"}}
	exampletest.Must(t, s.client.Create(t.Context(), namespace))
	s.namespace = namespace.Name

	// The operator may do what its role says, and nothing else.
	config := rest.CopyConfig(plane.Config())
	config.Impersonate.UserName = "system:serviceaccount:cronjob-system:cronjob-operator"
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				s.requests.Add(1)
			}
			return next.RoundTrip(r)
		})
	})
	options := ctrl.Options{Logger: testr.NewWithOptions(t, testr.Options{LogTimestamp: true})}
	options.Metrics.BindAddress = "0"
	options.Cache.DefaultNamespaces = map[string]cache.Config{s.namespace: {}}
	options.Controller.SkipNameValidation = ptr.To(true) // there is one operator for each story
	now := func() time.Time {
		s.reconciles.Add(1)
		return time.Now()
	}
	mgr, err := cronJobs(now).Manager(config, options)
	exampletest.Must(t, err)
	exampletest.Run(t, mgr)
	return s
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// newUser returns a client that has nothing to do with the operator.
func newUser(t *testing.T, plane *controlplane.ControlPlane) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(plane.Config(), client.Options{Scheme: simScheme(t)})
	exampletest.Must(t, err)
	return c
}

// await returns when the stage looks as the story wants, and fails if it does not for too long.
func (s *stage) await(what string, asWanted func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 45*time.Second)
	defer cancel()
	if !s.watchUntil(ctx, asWanted) {
		s.t.Fatalf("waited in vain for this: %s\n%s", what, s)
	}
}

// unchangedFor fails if the stage does not look as the story wants at any time within d.
func (s *stage) unchangedFor(d time.Duration, otherwise string, asWanted func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), d)
	defer cancel()
	if s.watchUntil(ctx, func() bool { return !asWanted() }) {
		s.t.Fatalf("%s\n%s", otherwise, s)
	}
}

// watchUntil calls found at once and after each change in the namespace, until it returns true. It
// reports false if ctx ends before that.
func (s *stage) watchUntil(ctx context.Context, found func() bool) bool {
	s.t.Helper()
	changed := make(chan struct{}, 1)
	for _, list := range []client.ObjectList{&v1.CronJobList{}, &batchv1.JobList{}, &corev1.PodList{}, &eventsv1.EventList{}} {
		w, err := s.client.Watch(ctx, list, client.InNamespace(s.namespace))
		if err != nil {
			s.t.Fatal(err)
		}
		defer w.Stop()
		go announce(w, changed)
	}
	for !found() {
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func announce(w watch.Interface, changed chan<- struct{}) {
	for range w.ResultChan() {
		select {
		case changed <- struct{}{}:
		default: // a change is already announced
		}
	}
}

// create creates a CronJob whose Jobs complete at once, unless change makes something else of it.
func (s *stage) create(schedule string, change ...func(*v1.CronJob)) *v1.CronJob {
	s.t.Helper()
	cronJob := newCronJob(s.namespace, schedule, change...)
	if err := s.client.Create(s.t.Context(), cronJob); err != nil {
		s.t.Fatal(err)
	}
	return cronJob
}

func newCronJob(namespace, schedule string, change ...func(*v1.CronJob)) *v1.CronJob {
	cronJob := &v1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello"},
		Spec: v1.CronJobSpec{
			Schedule: schedule,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever,
				Containers:    []corev1.Container{{Name: "hello", Image: "busybox"}},
			}}}},
		},
	}
	for _, f := range change {
		f(cronJob)
	}
	return cronJob
}

// endless lets the Jobs of a CronJob remain active: their Pods wait for a Node that does not exist.
func endless(c *v1.CronJob) {
	c.Spec.JobTemplate.Spec.Template.Spec.NodeSelector = map[string]string{"node": "nowhere"}
}

// patch changes the CronJob as a user does.
func (s *stage) patch(cronJob *v1.CronJob, change func(*v1.CronJob)) {
	s.t.Helper()
	base := cronJob.DeepCopy()
	change(cronJob)
	if err := s.client.Patch(s.t.Context(), cronJob, client.MergeFrom(base)); err != nil {
		s.t.Fatal(err)
	}
}

// get returns the CronJob as it is now.
func (s *stage) get(cronJob *v1.CronJob) *v1.CronJob {
	s.t.Helper()
	now := &v1.CronJob{}
	if err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(cronJob), now); err != nil {
		s.t.Fatal(err)
	}
	return now
}

func (s *stage) jobs() []batchv1.Job {
	s.t.Helper()
	var list batchv1.JobList
	s.list(&list)
	return list.Items
}

func (s *stage) pods() []corev1.Pod {
	s.t.Helper()
	var list corev1.PodList
	s.list(&list)
	return list.Items
}

// eventsOf returns the events that have a reason.
func (s *stage) eventsOf(reason string) []eventsv1.Event {
	s.t.Helper()
	var list eventsv1.EventList
	s.list(&list)
	return slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason != reason })
}

func (s *stage) list(list client.ObjectList) {
	s.t.Helper()
	if err := s.client.List(s.t.Context(), list, client.InNamespace(s.namespace)); err != nil {
		s.t.Fatal(err)
	}
}

// String says what is on the stage, for the message of a test that fails.
func (s *stage) String() string {
	var b strings.Builder
	var cronJobs v1.CronJobList
	s.list(&cronJobs)
	for _, c := range cronJobs.Items {
		fmt.Fprintf(&b, "CronJob %s: %+v\n", c.Name, c.Status)
	}
	for _, job := range s.jobs() {
		fmt.Fprintf(&b, "Job %s: %+v\n", job.Name, job.Status)
	}
	for _, pod := range s.pods() {
		fmt.Fprintf(&b, "Pod %s: %s\n", pod.Name, pod.Status.Phase)
	}
	return b.String()
}
