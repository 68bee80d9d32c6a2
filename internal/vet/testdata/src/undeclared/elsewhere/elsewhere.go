// Package elsewhere has a step for an engine that another package makes, with other steps.
package elsewhere

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/ctrlkit/ctrlkit/step"
)

// Do is for any engine of Pods.
func Do(_ context.Context, req *step.Request[*corev1.Pod]) error {
	req.Conditions.MarkHealthy("InputRead", "Done", "")
	return nil
}
