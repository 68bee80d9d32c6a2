// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

func init() { ctrl.SetLogger(logr.Discard()) }

var pairs = flag.Int("pairs", 10, "run so many `pairs` of faults")

// systems are what the simulator plays. Accidents are barns whose yard was deleted.
type systems struct{ yards, barns, accidents *sim.ExternalClient }

// A keeper is the client of a yard or a barn.
type keeper[T client.Object] struct {
	systems
	of   *sim.ExternalClient
	spec map[string]string
}

func (k keeper[T]) Observe(ctx context.Context, _ T, id string) (external.Observation, error) {
	found, err := k.of.Get(ctx, id)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		return external.Observation{State: external.Absent}, nil
	case err != nil:
		return external.Observation{}, err
	}
	seen := external.Observation{State: external.UpToDate, Owner: found.Tags["owner"]}
	if found.Spec["in"] != k.spec["in"] || found.Spec["drifted"] != "" {
		seen.State, seen.Drift = external.Drifted, []string{"spec.yard"}
	}
	return seen, nil
}

func (k keeper[T]) Create(ctx context.Context, obj T, creation external.Creation) (string, error) {
	_, err := k.of.Create(ctx, sim.Creation{Name: creation.Name, Spec: k.spec, Tags: map[string]string{"owner": external.OwnerOf(obj)}, Owner: obj.GetUID()})
	if errors.Is(err, sim.ErrExists) {
		err = nil
	}
	return creation.Name, err
}

func (k keeper[T]) Update(ctx context.Context, _ T, id string) error {
	return k.of.Update(ctx, id, k.spec)
}

// Delete deletes a resource. A yard with barns in it is an accident.
func (k keeper[T]) Delete(ctx context.Context, _ T, id string) error {
	all, err := k.barns.List(ctx)
	if err != nil {
		return err
	}
	for _, b := range all {
		if slices.Contains(strings.Fields(b.Spec["in"]), id) {
			if _, err := k.accidents.Create(ctx, sim.Creation{Name: id}); err != nil && !errors.Is(err, sim.ErrExists) {
				return err
			}
		}
	}
	if err := k.of.Delete(ctx, id); !errors.Is(err, sim.ErrNotFound) {
		return err
	}
	return nil
}

type connect[T client.Object] func(ctx context.Context, req *step.Request[T]) (external.Client[T], error)

func (c connect[T]) Connect(ctx context.Context, req *step.Request[T]) (external.Client[T], error) {
	return c(ctx, req)
}

// byUID names resources so that the simulator sees which names of two runs are the same.
func byUID[T client.Object](obj T) (string, error) { return "r-" + string(obj.GetUID()), nil }

// operator is that of Yards and Barns. Protects is how a Yard is kept while it is used.
func operator(protects func(*yardReference) step.Step[*Yard], change ...func(*yardOptions)) func(mgr ctrl.Manager, p *sim.Process) error {
	return func(mgr ctrl.Manager, p *sim.Process) error {
		s := systems{p.External("yards"), p.External("barns"), p.External("accidents")}
		yardOf := newYardReference(change...)
		yards, err := step.New(step.Options[*Yard]{Name: "yards", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true},
			external.New("Yard", external.Connector[*Yard](connect[*Yard](func(context.Context, *step.Request[*Yard]) (external.Client[*Yard], error) {
				return keeper[*Yard]{s, s.yards, map[string]string{}}, nil
			})), external.Options[*Yard]{Identity: external.ByName(byUID[*Yard]), Poll: time.Minute}),
			protects(yardOf))
		if err == nil {
			err = yards.Complete(ctrl.NewControllerManagedBy(mgr).For(&Yard{}))
		}
		if err != nil {
			return err
		}
		barns, err := step.New(step.Options[*Barn]{Name: "barns", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true},
			external.New("Barn", external.Connector[*Barn](connect[*Barn](func(ctx context.Context, req *step.Request[*Barn]) (external.Client[*Barn], error) {
				all, err := yardOf.All(ctx, req)
				var ids []string
				for _, in := range all {
					ids = append(ids, "r-"+string(in.UID)) // its annotations may have been removed
				}
				return keeper[*Barn]{s, s.barns, map[string]string{"in": strings.Join(ids, " ")}}, err
			})), external.Options[*Barn]{Identity: external.ByName(byUID[*Barn]), Poll: time.Minute, References: []reference.Of[*Barn]{yardOf}}))
		if err != nil {
			return err
		}
		return barns.Complete(ctrl.NewControllerManagedBy(mgr).For(&Barn{}))
	}
}

func workload(t *testing.T, protects func(*yardReference) step.Step[*Yard], script func(w *sim.World), change ...func(*yardOptions)) sim.Workload {
	return sim.Workload{
		Name: t.Name(), Scheme: scheme, CRDs: testkind.Files(t, yardKind, barnKind),
		Externals: []sim.External{{Name: "yards", Identity: sim.IdentityName}, {Name: "barns", Identity: sim.IdentityName}, {Name: "accidents", Identity: sim.IdentityName}},
		Operator:  sim.Manager(operator(protects, change...)), Quiet: 3 * time.Minute,
		Normalize: func(obj *sim.Object) bool {
			unstructured.RemoveNestedField(obj.Content, "metadata", "annotations", external.IntentAnnotation)
			return true
		},
		Script: func(w *sim.World) {
			script(w)
			if all := w.Resources("accidents"); len(all) > 0 {
				panic("a yard was deleted with a barn in it")
			}
		},
	}
}

func protect(yardOf *yardReference) step.Step[*Yard] { return reference.Protect(yardOf) }

const stays = "a Yard that is used stays until its user deletes the Barn"

// byName is the life of a Barn in the Yard that it names. The Yard is deleted first, while another
// Barn begins to use it.
func byName(w *sim.World) {
	in := yard("a")
	w.Create(barn("b", BarnSpec{Yard: "a"})) // it waits
	w.Create(in)
	w.Settle()
	w.Create(barn("late", BarnSpec{Yard: "a"}))
	w.Delete(in)
	w.Sleep(time.Minute) // the late one waits, or is in the Yard: both is right
	if len(w.Resources("yards")) != 1 {
		panic("the Yard is gone")
	}
	w.Delete(barn("b", BarnSpec{}), barn("late", BarnSpec{}))
	w.Settle()
}

// byLabels is the life of a Barn in a Yard that labels select.
func byLabels(w *sim.World) {
	first, second := yard("a", "color", "red"), yard("b", "color", "blue")
	of := barn("b", BarnSpec{Labels: map[string]string{"color": "red"}})
	w.Create(of, second) // it waits
	w.Settle()
	w.Create(first)
	w.Settle()
	sim.Update(w, second, func(y *Yard) { y.Labels["color"] = "red" }) // the choice stays
	w.Settle()
	w.Delete(second)
	w.Settle()
	w.Delete(first)
	w.Sleep(time.Minute) // annotations that another client removes from it are not written again
	if len(w.Resources("yards")) != 1 {
		panic("the Yard is gone, or the other one is not")
	}
	w.Delete(of)
	w.Settle()
}

// every is the life of a Barn in all Yards with a label, and in one more that is optional.
func every(w *sim.World) {
	first, second := yard("a", "color", "red"), yard("b", "color", "blue")
	w.Create(first)
	w.Settle() // the order of creation is that of the choice
	of := barn("b", BarnSpec{Yards: []reference.Target{{Labels: map[string]string{"color": "red"}, Every: true}, {Name: "c", Optional: true}}})
	w.Create(of, second)
	w.Settle()
	sim.Update(w, second, func(y *Yard) { y.Labels["color"] = "red" })
	w.Settle()
	w.Create(yard("c"))
	w.Settle()
	w.Delete(first) // the Barn leaves it
	w.Settle()
	sim.Update(w, of, func(b *Barn) { b.Spec.Yards = b.Spec.Yards[:1] })
	w.Settle()
	w.Delete(yard("c"))
	w.Settle()
	if len(w.Resources("yards")) != 1 {
		panic("a Yard that is not used is there, or the used one is not")
	}
	w.Delete(second, of)
	w.Settle()
}

// Whatever goes wrong: a Barn is made as soon as there is a Yard, a Yard is not deleted before its
// Barns, and nothing is stuck.
func TestSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	options := []sim.Option{sim.WithPairs(*pairs), sim.WithSample(20), sim.WithoutFault(fault.Recreate, stays), sim.WithoutFault(fault.DeleteAndCreate, stays)}
	t.Run("every", func(t *testing.T) {
		sim.Run(t, workload(t, protect, every, several), options...)
	})
	t.Run("by labels", func(t *testing.T) { sim.Run(t, workload(t, protect, byLabels), options...) })
	t.Run("by name", func(t *testing.T) {
		sim.Run(t, workload(t, protect, byName), append(options, sim.WithoutFault(fault.StripAnnotations,
			"a Barn that is deleted without its record after its Yard is gone waits for a person: nothing can look for what it may have made"))...)
	})
}

// A Yard that nothing keeps is deleted with a Barn in it.
func TestUnprotectedIsFound(t *testing.T) {
	rings.Test(t, "simulates")
	unprotected := func(*yardReference) step.Step[*Yard] { return reference.Protect[*Yard]() }
	report := sim.Explore(t, workload(t, unprotected, byName), sim.WithStopOn(oracle.ScriptRuns))
	if report != nil && len(report.Findings) == 0 {
		t.Errorf("nothing was found in %d plans", len(report.Plans))
	}
}
