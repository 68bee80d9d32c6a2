// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// diary is a fake that lists nothing, with what the operator has written into it.
type diary struct{ lines []string }

var diaries = NewFake("diary", func() *diary { return &diary{} })

// memorizing is an operator with two children. Once the image has changed, it makes a third one if it
// knows what it should not know: know is called when a process starts, and after each attempt to
// create the first child.
func memorizing(know func(p *Process, created error, before bool) (knows bool)) Workload {
	w := deploymentWorkload(nil)
	w.Operator = func(ctx context.Context, p *Process) error {
		knows := false
		return Manager(func(mgr ctrl.Manager, p *Process) error {
			o := &operation{Client: mgr.GetClient()}
			return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					o.obj = &appsv1.Deployment{}
					if err := o.Get(ctx, req.NamespacedName, o.obj); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					err := o.createChild(ctx)
					knows = know(p, err, knows)
					if err == nil {
						err = o.ensure(ctx, withName(o.child(), "second"))
					}
					if err == nil && knows && o.obj.Spec.Template.Spec.Containers[0].Image == "nginx:2" {
						err = o.ensure(ctx, withName(o.child(), "too-much"))
					}
					return ctrl.Result{}, err
				}))
		})(ctx, p)
	}
	return w
}

// Three operators: one that knows nothing, one that remembers that it was not allowed to create the
// first child, and one that writes into a fake whenever it is there.
func memorizers() map[string]Workload {
	return map[string]Workload{
		"right":     memorizing(func(*Process, error, bool) bool { return false }),
		"remembers": memorizing(func(_ *Process, err error, before bool) bool { return before || apierrors.IsForbidden(err) }),
		"writes down": memorizing(func(p *Process, err error, _ bool) bool {
			if d := diaries.Of(p); err == nil {
				d.lines = append(d.lines, "created")
			}
			return false
		}),
	}
}

func withName(c *corev1.ConfigMap, name string) *corev1.ConfigMap {
	c.Name = name
	return c
}

// A plan that continues as an earlier one is not run to its end, and nothing is missed for that, not
// even what only the operator remembers of a fault.
func TestJoin(t *testing.T) {
	rings.Test(t, "explores operators")
	for _, name := range []string{"right", "remembers"} {
		t.Run(name, func(t *testing.T) {
			workload := memorizers()[name]
			r, whole := Explore(t, workload), Explore(t, workload, func(s *settings) { s.whole = true })
			if r == nil || whole == nil {
				return // a worker
			}
			joined := r.simulation.Plans.Joined
			if joined < len(r.Plans)/3 {
				t.Errorf("%d of %d plans have joined an earlier one", joined, len(r.Plans))
			}
			if got := kindsOf(r); name == "right" && len(got) > 0 {
				t.Errorf("a right operator is accused: %v", got)
			}
			plan := fault.Plan{Faults: []fault.Fault{{Kind: fault.RefuseWrite, At: 1, How: "403"}}}
			if got := r.Violated(plan); name != "right" && !slices.Contains(got, oracle.SameEnd) {
				t.Errorf("%q shows %v, want %s", plan, got, oracle.SameEnd)
			}
			if diff := cmp.Diff(kindsOf(whole), kindsOf(r)); diff != "" {
				t.Errorf("other findings than without joining (-):\n%s", diff)
			}
			if whole.simulation.Plans.Joined > 0 || len(whole.Plans) != len(r.Plans) || whole.simulation.Requests <= r.simulation.Requests {
				t.Errorf("%d of %d plans joined, with %d requests, against %d", whole.simulation.Plans.Joined, len(whole.Plans), whole.simulation.Requests, r.simulation.Requests)
			}
		})
	}
}

// kindsOf returns the kinds of findings, with the numbers of plans that show them.
func kindsOf(r *Report) map[string]int {
	kinds := map[string]int{}
	for _, f := range r.Findings {
		kinds[f.Key] = f.Plans
	}
	return kinds
}

// Runs have the same mark where all that decides how they continue is the same: the world, what the
// living processes can remember, and what fakes hold.
func TestMarks(t *testing.T) {
	rings.Test(t, "simulates")
	refs := map[string]*reference{}
	marks := func(t *testing.T, name, plan string) []string {
		t.Helper()
		workload := memorizers()[name]
		if refs[name] == nil {
			refs[name], _ = planned(t, &workload)
			refs[name].joins = map[string]bool{}
		}
		result, err := runPlan(t, &workload, nil, mustParse(t, plan)[0], refs[name], oracleSet{})
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, m := range result.run.joint.marks {
			list = append(list, m.text)
		}
		return list
	}
	for _, test := range []struct {
		name, operator, a, b string
		same                 bool
	}{
		{"the same plan", "right", "crash before write 2", "crash before write 2", true},
		{"a process that has seen the same", "right", "crash after write 1", "crash before write 2", true},
		{"a refusal with another text", "right", "refuse write 1: 403", "refuse write 1: webhook", true},
		{"a refusal with another code", "right", "refuse write 1: 403", "refuse write 1: 500", false},
		{"another number of requests", "right", "refuse write 1: 403", "refuse write 2: 403", false},
		{"a fake that knows of it", "writes down", "crash after write 1", "crash before write 2", false},
		{"at another time", "right", "pause before write 1 for 2m0s", "pause before write 2 for 2m0s", true},
		{"excused by its fault", "right", "pause before write 1 for 2m0s", "wipe the status of deployments.apps default/x after write 1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			a, b := marks(t, test.operator, test.a), marks(t, test.operator, test.b)
			if len(a) == 0 || len(b) == 0 {
				t.Fatalf("%d and %d marks", len(a), len(b))
			}
			if got := a[0] == b[0]; got != test.same {
				t.Errorf("%q and %q have the same mark: %t", test.a, test.b, got)
			}
		})
	}
	for _, plan := range []string{"mutate write 1", "crash after write 90", "no fault"} {
		if got := marks(t, "right", plan); len(got) > 0 {
			t.Errorf("%q has marks: %v", plan, got)
		}
	}
}
