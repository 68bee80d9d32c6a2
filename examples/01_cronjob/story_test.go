// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The stories are played on a real API server, with the real garbage collector and Job controller;
// only the machines of the Pods are simulated.
func TestStories(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := ctrlkittest.StartControlPlane(t, controlplane.Options{
		Parts: controlplane.AllParts,
		CRDs:  []string{"config/crd/bases"},
		// Some clusters let only those name an owner who may write its finalizers: the role should
		// do for them.
		Flags: map[string][]string{"kube-apiserver": {"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"}},
	})
	(&exampletest.Cluster{WithWatch: newUser(t, plane)}).Apply(t, "config/rbac/operator.yaml", "config/rbac/role.yaml")
	stories := []struct {
		name string
		play func(*testing.T, *stage)
	}{
		{"jobs come and go", jobsComeAndGo},
		{"forbid", forbidWaits},
		{"replace", replaceReplaces},
		{"idle", anIdleOperatorSendsNoRequests},
	}
	// Parallel tests outlive the function that starts them, and the control plane must outlive
	// them.
	t.Run("group", func(t *testing.T) {
		for _, story := range stories {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				story.play(t, newStage(t, plane))
			})
		}
		t.Run("what the API server refuses", func(t *testing.T) {
			t.Parallel()
			refused(t, newUser(t, plane))
		})
	})
}

// Jobs are started, complete, and are cleaned up; suspension stops that; deletion takes everything
// along.
func jobsComeAndGo(t *testing.T, s *stage) {
	cronJob := s.create("@every 1s", func(c *v1.CronJob) {
		c.Spec.SuccessfulJobsHistoryLimit = ptr.To[int32](2)
	})

	// Two are kept of the Jobs that have completed: with the fifth that was seen, at least one has
	// gone.
	seen := sets.New[string]()
	s.await("five Jobs were started, and the first was cleaned up", func() bool {
		jobs := s.jobs()
		seen.Insert(names(jobs)...)
		return len(seen) >= 5 && !slices.Contains(names(jobs), slices.Min(seen.UnsortedList()))
	})

	s.patch(cronJob, func(c *v1.CronJob) { c.Spec.Suspend = ptr.To(true) })
	s.await("the CronJob is suspended, and the last Jobs have completed", func() bool {
		now := s.get(cronJob)
		return isScheduled(now, v1.ReasonSuspended) && len(now.Status.Active) == 0 && len(s.jobs()) == 2
	})
	latest := latestJob(s.jobs())
	if got := s.get(cronJob).Status.LastScheduleTime; got == nil || latest != fmt.Sprintf("hello-%d", got.Unix()) {
		t.Errorf("last schedule time %v, want that of the latest Job %s", got, latest)
	}
	ctrlkittest.CheckConditions(t, s.get(cronJob))
	s.unchangedFor(2500*time.Millisecond, "a Job was started while the CronJob was suspended", func() bool {
		return latestJob(s.jobs()) == latest
	})

	s.patch(cronJob, func(c *v1.CronJob) { c.Spec.Suspend = nil })
	s.await("runs continue", func() bool { return latestJob(s.jobs()) > latest })

	exampletest.Must(t, s.client.Delete(t.Context(), cronJob))
	s.await("Jobs and Pods are deleted with their CronJob", func() bool { return len(s.jobs())+len(s.pods()) == 0 })
}

// With Forbid a run waits, and the condition says what for.
func forbidWaits(t *testing.T, s *stage) {
	cronJob := s.create("@every 1s", endless, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = v1.ForbidConcurrent })
	s.await("the second run waits for the first", func() bool { return isScheduled(s.get(cronJob), v1.ReasonWaiting) })

	first := s.jobs()
	if len(first) != 1 {
		t.Fatalf("Jobs %q, want one", names(first))
	}
	ctrlkittest.CheckConditions(t, s.get(cronJob))
	message := meta.FindStatusCondition(s.get(cronJob).Status.Conditions, v1.ConditionScheduled).Message
	if !strings.Contains(message, first[0].Name) {
		t.Errorf("condition %q does not name the Job %s", message, first[0].Name)
	}
	s.unchangedFor(2500*time.Millisecond, "another Job was started", func() bool {
		return slices.Equal(names(s.jobs()), names(first))
	})

	err := s.client.Delete(t.Context(), &first[0], client.PropagationPolicy(metav1.DeletePropagationBackground))
	exampletest.Must(t, err)
	s.await("the next run is started after the Job is gone", func() bool {
		jobs := s.jobs()
		return len(jobs) == 1 && jobs[0].Name > first[0].Name
	})
}

// With Replace every run takes the place of the one before.
func replaceReplaces(_ *testing.T, s *stage) {
	s.create("@every 1s", endless, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = v1.ReplaceConcurrent })
	seen := sets.New[string]()
	s.await("of four Jobs one remains, and its Pod", func() bool {
		jobs, pods := s.jobs(), s.pods()
		seen.Insert(names(jobs)...)
		return len(seen) >= 4 && len(jobs) == 1 && len(pods) == 1 && metav1.IsControlledBy(&pods[0], &jobs[0])
	})
}

// Between two times of the schedule a reconcile costs the API server nothing, neither writes nor
// reads.
func anIdleOperatorSendsNoRequests(t *testing.T, s *stage) {
	cronJob := s.create("@every 1h")
	base := cronJob.DeepCopy()
	cronJob.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-time.Hour)}
	exampletest.Must(t, s.client.Status().Patch(t.Context(), cronJob, client.MergeFrom(base)))
	s.await("the run has completed, and its event has been written", func() bool {
		now := s.get(cronJob)
		return len(s.jobs()) == 1 && len(now.Status.Active) == 0 && isScheduled(now, v1.ReasonScheduled) &&
			now.Status.LastScheduleTime.After(cronJob.Status.LastScheduleTime.Time) && len(s.eventsOf("Started")) == 1
	})

	before := s.requests.Load()
	begun := s.reconciles.Load()
	for n := range int64(5) {
		s.patch(cronJob, func(c *v1.CronJob) { c.Annotations = map[string]string{"poke": fmt.Sprint(n)} })
		s.await("the change is reconciled", func() bool { return s.reconciles.Load() > begun+n })
	}
	if got := s.requests.Load() - before; got != 0 {
		t.Errorf("%d requests in %d reconciles of an idle operator, want none", got, s.reconciles.Load()-begun)
	}
}

// refused checks that mistakes are refused with a message that has the remedy.
func refused(t *testing.T, user client.Client) {
	tests := []struct {
		name   string
		change func(*v1.CronJob)
		want   string
	}{
		{"name too long", func(c *v1.CronJob) { c.Name = strings.Repeat("x", 53) }, "at most 52 characters"},
		{"name with dots", func(c *v1.CronJob) { c.Name = "hello.world" }, "must be a DNS label"},
		{"no schedule", func(c *v1.CronJob) { c.Spec.Schedule = "" }, "spec.schedule"},
		{"time zone in the schedule", func(c *v1.CronJob) { c.Spec.Schedule = "CRON_TZ=UTC @daily" }, "use timeZone instead"},
		{"local time zone", func(c *v1.CronJob) { c.Spec.TimeZone = ptr.To("Local") }, "name a zone"},
		{"unknown policy", func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = "Perhaps" }, `"Allow", "Forbid", "Replace"`},
		{"deadline of zero", func(c *v1.CronJob) { c.Spec.StartingDeadlineSeconds = ptr.To[int64](0) }, "startingDeadlineSeconds"},
		{"negative history", func(c *v1.CronJob) { c.Spec.FailedJobsHistoryLimit = ptr.To[int32](-1) }, "failedJobsHistoryLimit"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := user.Create(t.Context(), newCronJob("default", "@daily", tt.change), client.DryRunAll)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got error %v, want one that says %q", err, tt.want)
			}
		})
	}
	longest := newCronJob("default", "@daily", func(c *v1.CronJob) { c.Name = strings.Repeat("x", 52) })
	if err := user.Create(t.Context(), longest, client.DryRunAll); err != nil {
		t.Errorf("a name of 52 characters: %v", err)
	}
}

func isScheduled(cronJob *v1.CronJob, reason string) bool {
	c := meta.FindStatusCondition(cronJob.Status.Conditions, v1.ConditionScheduled)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && c.ObservedGeneration == cronJob.Generation
}

// latestJob returns the name of the Job that was scheduled last: the times in the names have
// equally many digits.
func latestJob(jobs []batchv1.Job) string { return slices.Max(append(names(jobs), "")) }

func names(jobs []batchv1.Job) []string {
	var names []string
	for _, job := range jobs {
		names = append(names, job.Name)
	}
	slices.Sort(names)
	return names
}
