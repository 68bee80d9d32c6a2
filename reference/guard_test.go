// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

const guardFinalizer = "references.ctrlkit.dev/barns"

// keyed is an operator of Barns that opens each with a key, which is in a ConfigMap that it does not
// reconcile. Guards is nil if nothing keeps the ConfigMap.
func keyed(guards bool) func(mgr ctrl.Manager, p *sim.Process) error {
	return func(mgr ctrl.Manager, p *sim.Process) error {
		s := systems{barns: p.External("barns")}
		keyOf := reference.New(reference.Options[*Barn, *corev1.ConfigMap]{
			Name: "key", Target: func(obj *Barn) reference.Target { return reference.Target{Name: obj.Spec.Yard} },
		})
		barns, err := step.New(step.Options[*Barn]{Name: "barns", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true},
			external.New("Barn", external.Connector[*Barn](connect[*Barn](func(ctx context.Context, req *step.Request[*Barn]) (external.Client[*Barn], error) {
				key, err := keyOf.Get(ctx, req)
				if err != nil {
					return nil, err
				}
				return keeper[*Barn]{s, s.barns, map[string]string{"in": key.Data["key"]}}, nil
			})), external.Options[*Barn]{Identity: external.ByName(byUID[*Barn]), Poll: time.Minute, References: []reference.Of[*Barn]{keyOf}}))
		if err == nil && guards {
			err = reference.Guard(mgr, reference.GuardOptions{Name: "barns"}, keyOf)
		}
		if err != nil {
			return err
		}
		return barns.Complete(ctrl.NewControllerManagedBy(mgr).For(&Barn{}))
	}
}

func keyFor(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"key": name}}
}

// together is the life of two Barns with one key, and the end of all in the order in which a namespace
// may be deleted. A key that is not used any more is free.
func together(w *sim.World) {
	first, second := keyFor("first"), keyFor("second")
	a, b := barn("a", BarnSpec{Yard: "first"}), barn("b", BarnSpec{Yard: "first"})
	w.Create(first, second, a, b)
	w.Settle()
	sim.Update(w, a, func(obj *Barn) { obj.Spec.Yard = "second" })
	w.Settle()
	w.Delete(second)
	w.Delete(first)
	w.Delete(a)
	w.Delete(b)
	w.Settle()
	if len(w.Resources("barns")) > 0 {
		panic("a Barn is left")
	}
}

func keyedWorkload(t *testing.T, guards bool, script func(w *sim.World)) sim.Workload {
	all := workload(t, protect, script)
	all.Operator, all.Externals = sim.Manager(keyed(guards)), []sim.External{{Name: "barns", Identity: sim.IdentityName}}
	all.Script = script
	return all
}

// Whatever goes wrong: what a Barn is deleted with stays until the Barn is gone, and goes then.
func TestGuardSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, keyedWorkload(t, true, together), sim.WithPairs(*pairs), sim.WithSample(20),
		sim.WithoutFault(fault.Recreate, stays), sim.WithoutFault(fault.DeleteAndCreate, stays),
		sim.WithoutFault(fault.StripAnnotations, "a Barn that is deleted without its record after its key is gone waits for a person"))
}

// Without a guard, the key goes first, and the Barns can't be deleted.
func TestUnguardedIsStuck(t *testing.T) {
	rings.Test(t, "simulates")
	report := sim.Explore(t, keyedWorkload(t, false, together), sim.WithPairs(0), sim.WithSample(1))
	if report != nil && len(report.Findings) == 0 {
		t.Errorf("nothing was found in %d plans", len(report.Plans))
	}
}

// The finalizer is on what is used, and on nothing else. One that a person takes off is not put back
// until the person wants it. Those of others stay.
func TestGuardRespectsPersons(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, keyedWorkload(t, true, func(w *sim.World) {
		used, unused, of := keyFor("used"), keyFor("unused"), barn("b", BarnSpec{Yard: "used"})
		used.Finalizers = []string{"example.com/kept"} // of another operator
		w.Create(used, unused, of)
		w.Settle()
		has := func(key *corev1.ConfigMap, want bool) {
			c, err := client.New(w.Config(), client.Options{Scheme: scheme})
			if err == nil {
				err = c.Get(context.Background(), client.ObjectKeyFromObject(key), key)
			}
			if err != nil {
				panic(err)
			}
			if slices.Contains(key.Finalizers, guardFinalizer) != want {
				panic("finalizers of " + key.Name)
			}
		}
		has(used, true)
		has(unused, false)
		sim.Update(w, used, func(key *corev1.ConfigMap) { key.Finalizers = []string{"example.com/kept"} })
		w.Settle()
		has(used, false)
		if used.Annotations[step.FinalizerRemovedAnnotation] != guardFinalizer {
			panic("it is not recorded")
		}
		sim.Update(w, used, func(key *corev1.ConfigMap) { key.Annotations = nil })
		w.Settle()
		has(used, true)
		w.Delete(of)
		w.Settle()
		has(used, false)
		if !slices.Equal(used.Finalizers, []string{"example.com/kept"}) {
			panic("the finalizer of another operator is gone")
		}
	}), sim.WithPairs(0), sim.WithSample(1))
}

// What a Barn is only observed with is kept, too, and only as long as it is.
func TestGuardOfWhatIsObserved(t *testing.T) {
	rings.Test(t, "simulates")
	for name, annotation := range map[string][2]string{"observe": unmanaged["observe"], "skip": unmanaged["skip"]} {
		t.Run(name, func(t *testing.T) {
			sim.Run(t, keyedWorkload(t, true, func(w *sim.World) {
				key, of := keyFor("used"), barn("b", BarnSpec{Yard: "used"})
				metav1.SetMetaDataAnnotation(&of.ObjectMeta, annotation[0], annotation[1])
				w.Create(key, of)
				w.Settle()
				w.Delete(key)
				w.Settle()
				c, err := client.New(w.Config(), client.Options{Scheme: scheme})
				if err == nil {
					err = c.Get(context.Background(), client.ObjectKeyFromObject(key), key)
				}
				if err != nil || !slices.Contains(key.Finalizers, guardFinalizer) {
					panic("the key is not kept")
				}
				w.Delete(of)
				w.Settle()
				if err := c.Get(context.Background(), client.ObjectKeyFromObject(key), key); err == nil {
					panic("the key is still there")
				}
			}), sim.WithPairs(0), sim.WithSample(1))
		})
	}
}
