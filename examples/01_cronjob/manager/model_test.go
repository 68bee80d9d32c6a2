// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Whatever happens between two reconciles (crashes in the middle of one, stale caches, users who
// delete Jobs and suspend the CronJob), no run is started twice, no policy is broken, and in the
// end nothing remains to be done.
func TestEveryRunIsStartedOnceWhateverHappens(t *testing.T) {
	rings.Test(t, "plays a hundred random stories")
	rapid.Check(t, func(rt *rapid.T) {
		policy := rapid.SampledFrom([]v1.ConcurrencyPolicy{v1.AllowConcurrent, v1.ForbidConcurrent, v1.ReplaceConcurrent}).Draw(rt, "policy")
		m := &model{
			world:   newWorld(t, func(c *v1.CronJob) { c.Spec.ConcurrencyPolicy = policy }),
			rt:      rt,
			started: map[string]int{},
		}
		m.logger = logr.Discard()
		rt.Repeat(map[string]func(*rapid.T){
			"time passes":              m.timePasses,
			"reconcile":                func(*rapid.T) { m.reconcile() },
			"crash":                    m.crash,
			"the CronJob is delivered": func(*rapid.T) { m.deliverCronJob() },
			"the Jobs are delivered":   func(*rapid.T) { m.jobs = m.clusterJobs() },
			"a Job finishes":           m.jobFinishes,
			"the user deletes a Job":   m.userDeletesJob,
			"the user suspends":        func(*rapid.T) { m.userSuspends(!m.inCluster().Spec.Suspended()) },
			"":                         func(*rapid.T) { m.check() },
		})
		m.settle()
	})
}

type model struct {
	*world
	rt      *rapid.T
	started map[string]int // how often each Job was created
	last    time.Time      // the last schedule time that was seen
}

// whole is the workflow of the controller.
func (m *model) whole(mgr *CronJobControllerManager) ctrlkit.Action {
	return ctrlkit.Finally(
		ctrlkit.Join(
			mgr.CleanUpOldJobsExceedsHistoryLimits(),
			ctrlkit.Sequential(
				mgr.ListActiveJobsAndUpdateStatus(),
				ctrlkit.If(!m.cronJob.Spec.Suspended(), mgr.RunNextScheduledJob()),
			),
		),
		mgr.UpdateCronJobStatus(),
	)
}

func (m *model) timePasses(rt *rapid.T) {
	m.now = m.now.Add(time.Duration(rapid.IntRange(1, 150).Draw(rt, "seconds")) * time.Second)
}

var errCrash = errors.New("the process is gone")

func (m *model) reconcile() { m.reconcileUntil(math.MaxInt, true) }

// crash ends a reconcile at one of its writes, before or after the API server has carried it out.
// The process that comes after it begins with a list of what there is.
func (m *model) crash(rt *rapid.T) {
	m.reconcileUntil(rapid.IntRange(0, 3).Draw(rt, "successful writes"), rapid.Bool().Draw(rt, "carried out"))
	m.refresh()
}

// reconcileUntil reconciles with that many writes that succeed. The one after them is carried out
// or not, but the answer is lost, and there are no more.
func (m *model) reconcileUntil(successful int, thenCarriedOut bool) {
	writes := 0
	write := func(carryOut func() error) error {
		writes++
		switch {
		case writes <= successful:
			return carryOut()
		case writes-1 == successful && thenCarriedOut:
			_ = carryOut() // what became of it, the process does not live to see
		}
		return errCrash
	}
	m.faults = interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return write(func() error {
				err := c.Create(ctx, obj, opts...)
				if err == nil {
					m.started[obj.GetName()]++
					if m.inCluster().Spec.Suspended() {
						m.rt.Errorf("Job %s was started while the CronJob is suspended", obj.GetName())
					}
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return write(func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write(func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	}
	if _, err := ctrlkit.IgnoreExit(m.run(m.whole)); err != nil && !errors.Is(err, errCrash) {
		m.rt.Errorf("reconciling: %v", err)
	}
}

func (m *model) inCluster() *v1.CronJob {
	var cronJob v1.CronJob
	if err := m.api.Get(m.t.Context(), client.ObjectKeyFromObject(m.cronJob), &cronJob); err != nil {
		m.rt.Fatal(err)
	}
	return &cronJob
}

func (m *model) deliverCronJob() { m.cronJob = m.inCluster() }

func (m *model) jobFinishes(rt *rapid.T) {
	job := m.anyJob(rt, func(job *batchv1.Job) bool { return finishedAs(job) == "" })
	finished(rapid.SampledFrom([]batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed}).Draw(rt, "how"))(job)
	if err := m.api.Status().Update(m.t.Context(), job); err != nil {
		rt.Fatal(err)
	}
}

// userDeletesJob deletes a Job that the status covers. What is deleted before that, by a user who
// was faster than the operator's next write, would be started again.
func (m *model) userDeletesJob(rt *rapid.T) {
	last := m.inCluster().Status.LastScheduleTime
	job := m.anyJob(rt, func(job *batchv1.Job) bool { return last != nil && !scheduledAt(job).After(last.Time) })
	if err := m.api.Delete(m.t.Context(), job); err != nil {
		rt.Fatal(err)
	}
}

func (m *model) userSuspends(suspend bool) {
	cronJob := m.inCluster()
	cronJob.Spec.Suspend = ptr.To(suspend)
	if err := m.api.Update(m.t.Context(), cronJob); err != nil {
		m.rt.Fatal(err)
	}
}

func (m *model) anyJob(rt *rapid.T, ok func(*batchv1.Job) bool) *batchv1.Job {
	var candidates []*batchv1.Job
	for _, job := range m.clusterJobs() {
		if ok(&job) {
			candidates = append(candidates, &job)
		}
	}
	if len(candidates) == 0 {
		rt.Skip("there is no such Job")
	}
	return candidates[rapid.IntRange(0, len(candidates)-1).Draw(rt, "Job")]
}

// check says what is true at every moment.
func (m *model) check() {
	for name, times := range m.started {
		if times > 1 {
			m.rt.Errorf("Job %s was started %d times", name, times)
		}
	}
	cronJob := m.inCluster()
	active := 0
	for _, job := range m.clusterJobs() {
		if finishedAs(&job) == "" {
			active++
		}
	}
	if active > 1 && cronJob.Spec.ConcurrencyPolicy != v1.AllowConcurrent {
		m.rt.Errorf("%d Jobs are active in spite of the policy %s", active, cronJob.Spec.ConcurrencyPolicy)
	}
	if last := cronJob.Status.LastScheduleTime; last != nil {
		if last.Time.Before(m.last) {
			m.rt.Errorf("the last schedule time went from %s back to %s", text(m.last), text(last.Time))
		}
		m.last = last.Time
	}
}

// settle lets everything be delivered and all Jobs finish, and checks that the operator becomes
// idle in the right state.
func (m *model) settle() {
	m.userSuspends(false)
	for range 3 {
		for _, job := range m.clusterJobs() {
			if finishedAs(&job) != "" {
				continue
			}
			finished(batchv1.JobComplete)(&job)
			if err := m.api.Status().Update(m.t.Context(), &job); err != nil {
				m.rt.Fatal(err)
			}
		}
		m.refresh()
		m.reconcile()
		m.check()
	}
	m.refresh()
	m.writes = nil
	m.reconcile()
	if len(m.writes) != 0 {
		m.rt.Errorf("writes %q, although nothing happens any more", m.writes)
	}
	status := m.inCluster().Status
	if now := m.now.Truncate(time.Minute); now.After(at(created)) && (status.LastScheduleTime == nil || !status.LastScheduleTime.Time.Equal(now)) {
		m.rt.Errorf("last schedule time %v, want %s", status.LastScheduleTime, text(now))
	}
	if got := len(m.clusterJobs()); got > 3+1 {
		m.rt.Errorf("%d Jobs were kept, want at most 3 that completed and 1 that failed", got)
	}
	wantCondition(m.rt, status, v1.ConditionScheduled, metav1.ConditionTrue, v1.ReasonScheduled)
}
