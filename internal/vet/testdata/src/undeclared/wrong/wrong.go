// Package wrong sets conditions that it does not declare.
package wrong

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

const inputReady = "InputReady"

var input = step.Step[*corev1.Pod]{
	Name:       "ReadInput",
	Conditions: []condition.Declaration{{Type: inputReady}},
	Do:         readInput,
}

func readInput(_ context.Context, req *step.Request[*corev1.Pod]) error {
	if req.Object.Name == "" {
		req.Conditions.MarkUnhealthy("InputRead", condition.SeverityInfo, "NotFound", "no name") // want `condition "InputRead" is set and not declared, which panics: declare it in Conditions of the step \(declared: InputReady, OutputReady\)`
	}
	req.Conditions.MarkHealthy(condition.Ready, "Done", "") // want `condition "Ready" is computed from the others and can't be set`
	req.Conditions.MarkHealthy("OutputReady", "Done", "")
	req.Conditions.MarkUnknown("Later", "Unknown", "") //nolint:undeclared // another step declares it
	req.Conditions.MarkHealthy(inputReady, "Done", "")
	return nil
}

func want(context.Context, *step.Request[*corev1.Pod], *apply.Set) error { return nil }

func newEngine(mgr ctrl.Manager) (*step.Engine[*corev1.Pod], error) {
	return step.New(step.Options[*corev1.Pod]{Name: "pods", Client: mgr.GetClient()},
		input, apply.Children("Output", want, apply.Condition("OutputReady")))
}
