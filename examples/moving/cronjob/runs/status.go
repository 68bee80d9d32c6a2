// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// The conditions of a CronJob.
const (
	Available   = "Available"
	Progressing = "Progressing"
	Degraded    = "Degraded"
)

// Conditions declares the conditions. Ready depends on Degraded alone: to be suspended is no failure.
func Conditions() []condition.Declaration {
	return []condition.Declaration{
		{Type: Available, Informational: true},
		{Type: Progressing, Informational: true},
		{Type: Degraded, AbnormalTrue: true},
	}
}

// SetConditions says in the conditions how the Jobs are. Each condition is set in every reconcile.
func SetConditions(req *step.Request[*v1.CronJob], found Jobs) {
	req.Conditions.MarkHealthy(Degraded, "AsExpected", "")
	req.Conditions.MarkUnhealthy(Progressing, condition.SeverityInfo, "NoJobsActive", "no Jobs are active")
	if n := len(found.Active); n > 0 {
		req.Conditions.MarkHealthy(Progressing, "JobsActive", fmt.Sprintf("%d Jobs are active", n))
	}
	switch active, failed := len(found.Active), len(found.Failed); {
	case req.Object.Spec.Suspended():
		req.Conditions.MarkUnhealthy(Available, condition.SeverityInfo, "Suspended", "no Jobs are started")
	case failed > 0:
		req.Conditions.MarkUnhealthy(Degraded, condition.SeverityWarning, "JobsFailed", fmt.Sprintf("%d Jobs have failed", failed))
		req.Conditions.MarkUnhealthy(Available, condition.SeverityWarning, "JobsFailed", fmt.Sprintf("%d Jobs have failed", failed))
	case active > 0:
		req.Conditions.MarkHealthy(Available, "JobsActive", fmt.Sprintf("%d Jobs are active", active))
	default:
		req.Conditions.MarkHealthy(Available, "AllJobsCompleted", "all Jobs are complete")
	}
}

// Delete deletes Jobs, each by its UID.
func Delete(ctx context.Context, c client.Client, jobs []*batchv1.Job) error {
	var errs []error
	for _, job := range jobs {
		if err := c.Delete(ctx, job, client.Preconditions{UID: &job.UID}, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting Job %q: %w", job.Name, err))
		}
	}
	return errors.Join(errs...)
}

// A Clock has the time. Tests have one of their own.
type Clock interface{ Now() time.Time }

// RealClock is the clock of an operator.
type RealClock struct{}

// Now returns the time.
func (RealClock) Now() time.Time { return time.Now() }
