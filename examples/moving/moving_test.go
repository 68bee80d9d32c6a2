package moving_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	after "github.com/ctrlkit/ctrlkit/examples/moving/after"
	v1 "github.com/ctrlkit/ctrlkit/examples/moving/api/v1"
	before "github.com/ctrlkit/ctrlkit/examples/moving/before"
	onestep "github.com/ctrlkit/ctrlkit/examples/moving/onestep"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The test of the reconciler need not change when it moves.
func TestTheTestIsTheSame(t *testing.T) {
	want, err := os.ReadFile("before/controller_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"onestep", "after"} {
		got, err := os.ReadFile(stage + "/controller_test.go")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("the test of %s is another one than that of before", stage)
		}
	}
}

func TestBefore(t *testing.T) {
	explore(t, func(mgr ctrl.Manager) error {
		return (&before.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	}, sim.SameEnd, sim.SilentAtRest)
}

func TestOneStep(t *testing.T) {
	explore(t, func(mgr ctrl.Manager) error {
		return (&onestep.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	}, sim.SameEnd)
}

func TestAfter(t *testing.T) {
	explore(t, func(mgr ctrl.Manager) error {
		return (&after.CacheReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	})
}

// explore simulates an operator, and compares which oracles have found something.
func explore(t *testing.T, setUp func(ctrl.Manager) error, want ...sim.Oracle) {
	t.Helper()
	report := sim.Explore(t, workload(t, func(mgr ctrl.Manager, _ *sim.Process) error { return setUp(mgr) }))
	if report == nil {
		return
	}
	found := map[sim.Oracle]bool{}
	for _, f := range report.Findings {
		found[f.Violation.Oracle] = true
		if !slices.Contains(want, f.Violation.Oracle) {
			t.Error(f.Text)
		}
	}
	for _, oracle := range want {
		if !found[oracle] {
			t.Errorf("%s has found nothing", oracle)
		}
	}
}

func workload(t *testing.T, setUp func(ctrl.Manager, *sim.Process) error) sim.Workload {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	cache := &v1.Cache{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "default"}, Spec: v1.CacheSpec{Replicas: 1}}
	return sim.Workload{
		Scheme: scheme, CRDs: []string{"config/crd"},
		Operator: sim.Manager(setUp),
		Script: func(w *sim.World) {
			w.Create(cache)
			w.Settle()
			sim.Update(w, cache, func(c *v1.Cache) { c.Spec.Replicas = 3 })
			w.Settle()
			w.Delete(cache)
			w.Settle()
		},
	}
}
