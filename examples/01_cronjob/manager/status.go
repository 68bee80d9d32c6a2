// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
)

// Conditions returns the conditions that the actions maintain.
func Conditions() []condition.Declaration {
	return []condition.Declaration{
		{Type: v1.ConditionScheduled},
		{Type: v1.ConditionMissedRuns, AbnormalTrue: true, Informational: true},
	}
}

// UpdateCronJobStatus sets the conditions that no other action has set.
func (i *impl) UpdateCronJobStatus(context.Context, logr.Logger) (ctrl.Result, error) {
	if i.cronJob.Spec.Suspended() {
		i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonSuspended, "no runs are started while spec.suspend is true")
	}
	if missed, _ := i.conditions.Get(v1.ConditionMissedRuns); missed.Status == metav1.ConditionUnknown {
		i.setOnSchedule()
	}
	return ctrlkit.NoRequeue()
}

// A problem is an error with a reason of its own in the condition Scheduled.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// setNotScheduled reports why no run is started. Only a person can solve a problem; the severity of
// other errors depends on their class.
func (i *impl) setNotScheduled(err error) {
	if p := (*problem)(nil); errors.As(err, &p) {
		i.conditions.MarkUnhealthy(v1.ConditionScheduled, condition.SeverityError, p.reason, err.Error())
		return
	}
	class := failure.Classify(err)
	if ctrlkit.Waits(err) != nil || class.Silent(0) {
		return // it is likely to clear soon
	}
	i.conditions.MarkUnhealthy(v1.ConditionScheduled, class.Severity, v1.ReasonJobNotCreated, err.Error())
}

func (i *impl) setScheduled() {
	i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonScheduled, "runs are started at the times of the schedule")
}

func (i *impl) setWaiting(active []corev1.ObjectReference) {
	i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonWaiting,
		fmt.Sprintf("a run is due and waits for %s, because concurrencyPolicy is Forbid", namesOf(active)))
}

// setMissedBefore reports the runs that were missed before the one that was just started.
func (i *impl) setMissedBefore(runs runs) {
	if runs.missed > countedMissedRuns && i.cronJob.Spec.StartingDeadlineSeconds == nil {
		i.setMissed(v1.ReasonTooManyMissed, fmt.Sprintf(
			"more than %d runs were missed and only the latest was started: to skip late runs, set startingDeadlineSeconds;"+
				" if the CronJob was not suspended or blocked, check whether the operator was down or its clock wrong",
			countedMissedRuns))
		return
	}
	i.setOnSchedule()
}

func (i *impl) setMissed(reason, message string) {
	i.conditions.MarkUnhealthy(v1.ConditionMissedRuns, condition.SeverityWarning, reason, message)
}

func (i *impl) setOnSchedule() {
	i.conditions.MarkHealthy(v1.ConditionMissedRuns, v1.ReasonOnSchedule, "the latest run that was due has been started")
}
