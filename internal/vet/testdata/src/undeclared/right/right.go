// Package right sets what another step of the engine declares, which is made elsewhere.
package right

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

type readInput struct{ conditions []string }

// declared are not in the code.
func (r readInput) declared() []condition.Declaration {
	var all []condition.Declaration
	for _, name := range r.conditions {
		all = append(all, condition.Declaration{Type: name})
	}
	return all
}

func (r readInput) do(_ context.Context, req *step.Request[*corev1.Pod]) error {
	req.Conditions.MarkHealthy("InputRead", "Done", "")
	return nil
}

func newEngine(mgr ctrl.Manager) (*step.Engine[*corev1.Pod], error) {
	r := readInput{[]string{"InputRead"}}
	return step.New(step.Options[*corev1.Pod]{Name: "pods", Client: mgr.GetClient()},
		step.Step[*corev1.Pod]{Name: "ReadInput", Do: r.do, Conditions: r.declared()})
}
