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

// Conditions are those that the actions keep.
func Conditions() []condition.Declaration {
	return []condition.Declaration{
		{Type: v1.ConditionScheduled},
		{Type: v1.ConditionMissedRuns, Polarity: condition.PolarityAbnormalTrue, Weight: condition.WeightInformational},
	}
}

// UpdateCronJobStatus says in the conditions what no other action has said.
func (i *impl) UpdateCronJobStatus(context.Context, logr.Logger) (ctrl.Result, error) {
	if i.cronJob.Spec.Suspended() {
		i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonSuspended, "no runs are started while spec.suspend is true")
	}
	if missed, _ := i.conditions.Get(v1.ConditionMissedRuns); missed.Status == metav1.ConditionUnknown {
		i.setOnSchedule()
	}
	return ctrlkit.NoRequeue()
}

// A problem is an error that has a reason of its own in the condition Scheduled.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

// setNotScheduled says why no run is started. Only a person can change a problem with a name; what else the API server
// refuses is as bad as its class.
func (i *impl) setNotScheduled(err error) {
	if p := (*problem)(nil); errors.As(err, &p) {
		i.conditions.MarkUnhealthy(v1.ConditionScheduled, condition.SeverityError, p.reason, err.Error())
		return
	}
	verdict := failure.Classify(err)
	if ctrlkit.Waits(err) != nil || verdict.Silent(0) {
		return // it passes in a moment
	}
	i.conditions.MarkUnhealthy(v1.ConditionScheduled, verdict.Severity, v1.ReasonJobNotCreated, err.Error())
}

func (i *impl) setScheduled() {
	i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonScheduled, "runs are started at the times of the schedule")
}

func (i *impl) setWaiting(active []corev1.ObjectReference) {
	i.conditions.MarkHealthy(v1.ConditionScheduled, v1.ReasonWaiting,
		fmt.Sprintf("a run is due and waits for %s, because concurrencyPolicy is Forbid", namesOf(active)))
}

// setMissedBefore says in the status what was missed before the run that has just been started.
func (i *impl) setMissedBefore(runs runs) {
	if runs.missed > countedMissedRuns && i.cronJob.Spec.StartingDeadlineSeconds == nil {
		i.setMissed(v1.ReasonTooManyMissed, fmt.Sprintf(
			"more than %d runs were missed and only the latest was made up: if none should be, set startingDeadlineSeconds;"+
				" if the CronJob was not suspended or blocked, look whether the operator was down or its clock wrong",
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
