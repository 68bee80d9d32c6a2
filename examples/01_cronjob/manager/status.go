package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// UpdateCronJobStatus writes the status that the actions before it have left, if it is not what was read.
func (i *impl) UpdateCronJobStatus(ctx context.Context, _ logr.Logger) (ctrl.Result, error) {
	if i.cronJob.Spec.Suspended() {
		i.setReady(metav1.ConditionTrue, v1.ReasonSuspended, "no runs are started while spec.suspend is true")
	}
	for c := range i.cronJob.Status.Conditions {
		i.cronJob.Status.Conditions[c].ObservedGeneration = i.cronJob.Generation // all of them were looked at, changed or not
	}
	if equality.Semantic.DeepEqual(i.cronJob.Status, i.read.Status) {
		return ctrlkit.NoRequeue()
	}
	// With the resource version in the patch, a status made from an old version replaces nothing newer.
	patch := client.MergeFromWithOptions(i.read, client.MergeFromWithOptimisticLock{})
	err := i.client.Status().Patch(ctx, i.cronJob, patch)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// It has changed, or is gone, and the event of that is on its way, most likely. A refusal that looks the same and has another cause has
		// no event: so we look again.
		return ctrlkit.PollFor("the newest version of the CronJob to arrive in the cache", lookAgain)
	case err != nil:
		return ctrlkit.RequeueIfError(fmt.Errorf("writing the status: %w", err))
	}
	i.announce()
	return ctrlkit.NoRequeue()
}

// lookAgain is how long a status waits that could not be written.
const lookAgain = 5 * time.Second

// onSchedule is the message while no run is missed.
const onSchedule = "the latest run that was due has been started"

// announce makes an event of every condition that has become bad. It is called after the status was written, so that there is
// one event for one change.
func (i *impl) announce() {
	for _, c := range i.cronJob.Status.Conditions {
		before := meta.FindStatusCondition(i.read.Status.Conditions, c.Type)
		changed := before == nil || before.Status != c.Status || before.Reason != c.Reason || before.Message != c.Message
		if changed && isBad(c) {
			i.recorder.Eventf(i.cronJob, nil, corev1.EventTypeWarning, c.Reason, "Reconcile", "%s", c.Message)
		}
	}
}

func isBad(c metav1.Condition) bool {
	switch c.Type {
	case v1.ConditionMissedRuns:
		return c.Status == metav1.ConditionTrue
	default:
		return c.Status == metav1.ConditionFalse
	}
}

// A problem is an error that has a reason of its own in the condition Ready.
type problem struct {
	reason string
	err    error
}

func (p *problem) Error() string { return p.err.Error() }
func (p *problem) Unwrap() error { return p.err }

func (i *impl) setNotReady(err error) {
	reason := v1.ReasonJobNotCreated
	if p := (*problem)(nil); errors.As(err, &p) {
		reason = p.reason
	}
	i.setReady(metav1.ConditionFalse, reason, err.Error())
}

func (i *impl) setScheduled() {
	i.setReady(metav1.ConditionTrue, v1.ReasonScheduled, "runs are started at the times of the schedule")
}

func (i *impl) setWaiting(active []corev1.ObjectReference) {
	i.setReady(metav1.ConditionTrue, v1.ReasonWaiting,
		fmt.Sprintf("a run is due and waits for %s, because concurrencyPolicy is Forbid", namesOf(active)))
}

// setMissedBefore says in the status what was missed before the run that has just been started.
func (i *impl) setMissedBefore(runs runs) {
	if runs.missed > countedMissedRuns && i.cronJob.Spec.StartingDeadlineSeconds == nil {
		i.setMissedRuns(metav1.ConditionTrue, v1.ReasonTooManyMissed, fmt.Sprintf(
			"more than %d runs were missed and only the latest was made up: if none should be, set startingDeadlineSeconds;"+
				" if the CronJob was not suspended or blocked, look whether the operator was down or its clock wrong",
			countedMissedRuns))
		return
	}
	i.setMissedRuns(metav1.ConditionFalse, v1.ReasonOnSchedule, onSchedule)
}

func (i *impl) setReady(status metav1.ConditionStatus, reason, message string) {
	i.setCondition(v1.ConditionReady, status, reason, message)
}

func (i *impl) setMissedRuns(status metav1.ConditionStatus, reason, message string) {
	i.setCondition(v1.ConditionMissedRuns, status, reason, message)
}

func (i *impl) setCondition(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&i.cronJob.Status.Conditions, metav1.Condition{
		Type:               kind,
		Status:             status,
		Reason:             reason,
		Message:            message,
		ObservedGeneration: i.cronJob.Generation,
		LastTransitionTime: metav1.NewTime(i.now),
	})
}
