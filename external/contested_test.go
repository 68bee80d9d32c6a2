// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/sim"
)

const refused = "the object is refused, which is an error until it names another resource"

const alone = "with its owner the resource is gone, and who has named it makes one of its own"

// Whatever goes wrong: what the owner of another object writes into that one, with every word that
// it has, changes nothing of the resource, and neither does its deletion. This holds also in a
// system that stores no owners, and with several workers.
func TestNothingOfTheLiving(t *testing.T) {
	rings.Test(t, "simulates")
	for _, class := range classes() {
		class.life = contested
		t.Run(class.name, func(t *testing.T) {
			class.sampled(t)
			for _, class.ownerless = range []bool{false, true} {
				for _, class.workers = range []int{1, 10} {
					t.Run(fmt.Sprintf("ownerless %t, %d workers", class.ownerless, class.workers), func(t *testing.T) {
						if class.ownerless != (class.workers == 10) {
							rings.Explore(t, "takes minutes for all of them")
						}
						sim.Run(t, class.workload(class.operator), sim.WithPairs(*pairs), sim.WithSample(3), sim.WithoutOracle(oracle.EndsWell, refused),
							sim.WithoutFault(fault.Recreate, alone), sim.WithoutFault(fault.DeleteAndCreate, alone))
					})
				}
			}
		})
	}
}

// Whatever goes wrong: an object that was restored under another UID leaves the resource alone until
// a person says that the former one is gone for good.
func TestRestoredLeavesAlone(t *testing.T) {
	rings.Test(t, "simulates")
	const why = "the script removes the finalizer, as if the cluster were lost"
	for _, class := range classes() {
		class.life = restoredLife
		t.Run(class.name, func(t *testing.T) {
			class.sampled(t)
			sim.Run(t, class.workload(class.operator), sim.WithPairs(*pairs), sim.WithSample(3),
				sim.WithoutOracle(oracle.EndsWell, refused), sim.WithoutOracle(oracle.NoLeak, why), sim.WithoutOracle(oracle.OneExternal, why), sim.WithoutOracle(oracle.FinalizerFirst, why),
				sim.WithoutFault(fault.Recreate, why), sim.WithoutFault(fault.DeleteAndCreate, why),
				sim.WithoutFault(fault.Vanish, why), sim.WithoutFault(fault.Drift, "what drifts is left as it is, as long as the resource is not ours"))
		})
	}
}

// sampled leaves a class to make explore, unless it is one of the two that differ most.
func (c identityClass) sampled(t *testing.T) {
	t.Helper()
	if c.name != "name" && c.name != "none" {
		rings.Explore(t, "takes minutes for all classes")
	}
}

// thieves are Depots that are after the resource of another one, by what they are created with.
func thieves(owner *Depot, id string) map[string]map[string]string {
	const record = "2026-11-22T10:00:00Z"
	return map[string]map[string]string{
		"taker":    {external.IDAnnotation: id, "external.ctrlkit.dev/adopt-from": string(owner.UID)},
		"forger":   {external.IDAnnotation: id, external.IntentAnnotation: "created " + record},
		"adopter":  {external.IDAnnotation: id, external.IntentAnnotation: "created " + record + " from " + string(owner.UID)},
		"copy":     maps.Clone(owner.Annotations),
		"observer": {external.IDAnnotation: id, policy.AllowAnnotation: "observe"},
		"giver":    {external.IDAnnotation: id, "external.ctrlkit.dev/give-to": "another"},
	}
}

// contest has Depots that name the resource of another one.
func (c identityClass) contest(w *sim.World) {
	w.Create(depot("a"))
	c.settle(w)
	a, _ := sim.Get(w, depot("a"))
	id := inventory{w}.of(a.UID)
	all := thieves(a, id)
	names := slices.Sorted(maps.Keys(all))
	for _, name := range names {
		thief := depot(name)
		thief.Spec.Size, thief.Annotations = 9, all[name]
		w.Create(thief)
	}
	c.settle(w)
	untouched(w, id, a.UID)
	for _, name := range names {
		w.Delete(depot(name))
	}
	c.settle(w)
	untouched(w, id, a.UID)
	w.Delete(depot("a"))
	c.settle(w)
	audit(w)
}

// restore replaces a Depot by one with the same manifest, as a backup does.
func (c identityClass) restore(w *sim.World) {
	w.Create(depot("a"))
	c.settle(w)
	before, _ := sim.Get(w, depot("a"))
	id := inventory{w}.of(before.UID)
	sim.Update(w, depot("a"), func(d *Depot) { d.Finalizers = nil })
	w.Delete(depot("a"))
	after := depot("a")
	after.Annotations, after.Spec.Size = before.Annotations, 7
	w.Create(after)
	w.Settle()
	untouched(w, id, before.UID)
	sim.Update(w, depot("a"), func(d *Depot) { d.Annotations["external.ctrlkit.dev/adopt-from"] = "former" })
	w.Settle()
	w.Delete(depot("a"))
	w.Settle()
}

// untouched ends a run in which the resource of a Depot was changed.
func untouched(w *sim.World, id string, owner types.UID) {
	for _, r := range w.Resources("depots") {
		if r.ID == id && (!strings.HasPrefix(r.Spec["size"], "1") || // also drifted
			r.Tags["owner"] != string(owner)) {
			panic(fmt.Sprintf("the resource of another object is %v", r))
		}
	}
}
