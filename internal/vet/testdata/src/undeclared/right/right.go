// Package right sets what another step of the engine declares, which is made elsewhere.
package right

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

type readInput struct{ conditions []string }

func (readInput) Name() string { return "ReadInput" }

// Conditions declares what is not in the code.
func (r readInput) Conditions() []condition.Declaration {
	var all []condition.Declaration
	for _, name := range r.conditions {
		all = append(all, condition.Declaration{Type: name})
	}
	return all
}

func (readInput) Do(_ context.Context, req *step.Request[*corev1.Pod]) (ctrl.Result, error) {
	req.Conditions.MarkHealthy("InputRead", "Done", "")
	return ctrlkit.NoRequeue()
}

func newEngine(mgr ctrl.Manager) (*step.Engine[*corev1.Pod], error) {
	return step.New(step.Options[*corev1.Pod]{Name: "pods", Client: mgr.GetClient()}, readInput{[]string{"InputRead"}})
}
