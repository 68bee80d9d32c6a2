package guide

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestRecordedFailure(t *testing.T) {
	sim.Run(t, sim.Workload{
		Scheme: scheme,
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return (&MemcachedReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
		}),
	}, sim.From("testdata/stuck.yaml"))
}
