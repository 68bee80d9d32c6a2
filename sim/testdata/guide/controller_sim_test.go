package guide

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestMemcachedSurvives(t *testing.T) {
	memcached := &Memcached{
		ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "default"},
		Spec:       MemcachedSpec{Size: 1},
	}
	sim.Run(t, sim.Workload{
		Scheme: scheme,
		CRDs:   []string{"crd"},
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return (&MemcachedReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
		}),
		Script: func(w *sim.World) {
			w.Create(memcached)
			w.Settle()
			sim.Update(w, memcached, func(m *Memcached) { m.Spec.Size = 3 })
			w.Settle()
			w.Delete(memcached)
			w.Settle()
		},
	})
}
