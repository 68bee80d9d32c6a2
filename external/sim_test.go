// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

func init() { ctrl.SetLogger(logr.Discard()) }

var pairs = flag.Int("pairs", 10, "run so many `pairs` of faults against each class of external systems")

// An identityClass is an external system, and how the operator identifies its resources.
type identityClass struct {
	name     string
	system   sim.External
	identity external.Identity[*Depot]
	lagging  bool // what was created is not seen at once, by whatever call
	life     life
	leak     leak // of passwords; nil is right

	ownerless bool // the system does not show whose a resource is
	workers   int  // one if it is zero
}

// A life is what users do with Depots.
type life int

const (
	whole        life = iota
	plain             // no Depot is deleted while it is created
	unattended        // no person does what conditions say
	stripped          // other clients remove annotations all the time
	brief             // one Depot, which does not change
	contested         // a Depot names the resource of another one
	restoredLife      // a Depot is replaced by one with the same manifest
)

// lag is how long the systems may not show what was created. Simulated ones take a minute.
const lag = 70 * time.Second

func classes() []identityClass {
	system := func(identity sim.Identity, lag int) sim.External {
		return sim.External{Name: "depots", Identity: identity, ReadLag: lag, Latency: time.Second}
	}
	// With the UID as it is, in which the simulator sees which names of two runs are the same.
	byName := external.ByName(func(d *Depot) (string, error) { return "depot-" + string(d.UID), nil })
	return []identityClass{
		{name: "name", system: system(sim.IdentityName, 2), identity: byName, lagging: true},
		{name: "token", system: system(sim.IdentityToken, 2), identity: external.ByToken[*Depot](), lagging: true},
		{name: "tag", system: system(sim.IdentityTag, 2), identity: external.ByTag[*Depot](lag), lagging: true},
		{name: "none", system: system(sim.IdentityNone, 0), identity: external.ByNothing[*Depot]()},
	}
}

// Whatever goes wrong while a Depot is created, changed, deleted, and deleted while it is created:
// there is one resource for each that exists, and none for one that is gone. Where the system has
// nothing to find a resource by, a person has to look after some crashes, as the condition says.
func TestSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	for _, class := range classes() {
		t.Run(class.name, func(t *testing.T) {
			options := []sim.Option{sim.WithPairs(*pairs), sim.WithSample(6)}
			if class.system.Identity == sim.IdentityNone {
				const alone = "the Secret comes back while the operator becomes idle, when the person who has to look after a crash is gone"
				options = append(options, sim.WithoutFault(fault.Withhold, alone), sim.WithoutFault(fault.WithholdAtDeletion, alone))
				options = append(options, sim.WithoutOracle(oracle.BecomesIdle, "each attempt to create what a system refuses is recorded before it and after it, because a crash in between must be seen; one object tries for all"))
			}
			sim.Run(t, class.workload(class.operator), options...)
		})
	}
}

// Other clients that remove the annotations, also of Depots that are being deleted, lose no
// resource, and have none made twice.
func TestSurvivesStripping(t *testing.T) {
	rings.Test(t, "simulates")
	for _, class := range classes() {
		options := []sim.Option{sim.WithSample(8)}
		if class.name == "token" {
			options = append(options,
				sim.WithoutOracle(oracle.OneExternal, "whether a resource was deleted already is known from the system only, which makes it again for its token: one after the other, and the last is deleted, too"),
				sim.WithoutOracle(oracle.NoNoopWrites, "after a restart with a cache from the past, a patch of an object that is gone is refused, and nothing else happens"))
		}
		class.life = stripped
		t.Run(class.name, func(t *testing.T) {
			if class.name != "token" {
				rings.Explore(t, "takes minutes")
			}
			sim.Run(t, class.workload(class.operator), options...)
		})
	}
}

// workload is the life of some Depots.
func (c identityClass) workload(operator func(mgr ctrl.Manager, p *sim.Process) error) sim.Workload {
	return sim.Workload{
		Name: c.name, Scheme: depotScheme, CRDs: []string{"testdata/crd"}, Externals: []sim.External{c.system},
		Operator: sim.Manager(operator), Objects: []client.Object{canaries()}, Script: c.script, Quiet: 3 * time.Minute, Normalize: withoutIntent,
	}
}

// withoutIntent leaves out when a resource was created.
func withoutIntent(obj *sim.Object) bool {
	u := unstructured.Unstructured{Object: obj.Content}
	annotations := u.GetAnnotations()
	delete(annotations, external.IntentAnnotation)
	u.SetAnnotations(annotations)
	return true
}

func (c identityClass) operator(mgr ctrl.Manager, p *sim.Process) error {
	return c.complete(mgr, p, external.New)
}

// connectionOf has the connection of one Depot published. The others are deleted while they are
// created, so that it depends on the moment whether it would be.
func connectionOf(d *Depot) string {
	if d.Name == "a" {
		return "a-connection"
	}
	return ""
}

// A construct is New, or one that makes a mistake.
type construct func(string, external.Connector[*Depot], external.Options[*Depot]) step.Step[*Depot]

func (c identityClass) complete(mgr ctrl.Manager, p *sim.Process, construct construct) error {
	options := external.Options[*Depot]{
		Identity: c.identity, Poll: time.Minute, Busy: 20 * time.Second, ConnectionSecret: connectionOf,
		Watches: watchedByDepots(),
	}
	lookout, err := newLookout(mgr.GetLogger())
	if err != nil {
		return err
	}
	if c.lagging {
		options.Visible = lag
	}
	engine, err := step.New(step.Options[*Depot]{
		Name: "depots", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true,
		Observers: []journal.Observer{lookout}, Controller: controller.Options{MaxConcurrentReconciles: c.workers},
	}, construct("Depot", depots{p.External("depots"), c.lagging, c.leak, c.ownerless}, options))
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Depot{}))
}

// script is what users do. Two Depots are deleted at different moments of their creation, and the
// resource of another one by hand: while it is updated, and while nothing happens.
func (c identityClass) script(w *sim.World) {
	switch c.life {
	case stripped:
		c.strip(w)
		return
	case contested:
		c.contest(w)
		return
	case restoredLife:
		c.restore(w)
		return
	case brief:
		w.Create(depot("a"))
		c.settle(w)
		searchDepots(w)
		return
	}
	w.Create(depot("a"))
	c.settle(w)
	sim.Update(w, depot("a"), func(d *Depot) { d.Spec.Size = 5 })
	w.Sleep(1500 * time.Millisecond)
	removeByHand(w)
	c.settle(w)
	removeByHand(w)
	w.Sleep(3 * time.Minute) // until it is noticed, and no call is in progress
	c.settle(w)
	if c.life != plain {
		w.Create(depot("b"), depot("c"))
		w.Sleep(500 * time.Millisecond)
		w.Delete(depot("b"))
		w.Sleep(time.Second)
		w.Delete(depot("c"))
		c.settle(w)
		audit(w)
	}
	w.Delete(depot("a"))
	c.settle(w)
	audit(w)
}

// removeByHand deletes all resources, behind the back of the operator.
func removeByHand(w *sim.World) {
	for _, r := range w.Resources("depots") {
		w.RemoveResource("depots", r.ID)
	}
}

// strip removes the annotations of Depots at different moments of their creation and deletion.
func (c identityClass) strip(w *sim.World) {
	remove := func(names ...string) {
		for _, name := range names {
			patch(w, depot(name), `{"metadata":{"annotations":null}}`)
		}
	}
	w.Create(depot("a"), depot("b"), depot("c"))
	w.Sleep(2500 * time.Millisecond)
	remove("a", "b", "c")
	w.Delete(depot("b"))
	remove("b")
	w.Sleep(5 * time.Second)
	remove("a", "c")
	w.Delete(depot("c"))
	remove("c")
	c.settle(w)
	audit(w)
	w.Delete(depot("a"))
	remove("a")
	c.settle(w)
	audit(w)
}

// patch changes a Depot as a person does, who does not insist.
func patch(w *sim.World, d *Depot, text string) {
	c, err := client.New(w.Config(), client.Options{Scheme: depotScheme})
	if err == nil {
		err = c.Patch(context.Background(), d, client.RawPatch(types.MergePatchType, []byte(text)))
	}
	if err != nil {
		w.Log("the person will try again: " + err.Error())
	}
}

// settle waits until the operator is idle. Where it needs a person, there is one, who sees to it
// that a Depot is there again which was deleted to be created later, while there is time to look
// after it.
func (c identityClass) settle(w *sim.World) {
	if c.system.Identity == sim.IdentityNone && c.life != unattended {
		for minute := range 15 {
			w.Sleep(time.Minute)
			if minute == 5 {
				sim.Get(w, depot("a"))
			}
			obey(w)
		}
	}
	w.Settle()
}

// obey does what the condition CreationUnknown says.
func obey(w *sim.World) {
	list := sim.List(w, &DepotList{}, "")
	for i := range list.Items {
		d := &list.Items[i]
		ready := meta.FindStatusCondition(d.Status.Conditions, "Ready")
		if ready == nil || ready.Reason != "CreationUnknown" {
			continue
		}
		annotation, value := external.IntentAnnotation, `"none"`
		if id := (inventory{w}).of(d.UID); id != "" {
			annotation, value = external.IDAnnotation, fmt.Sprintf("%q", id)
		}
		w.Log("a person sets " + annotation + " of " + d.Name + " to " + value)
		patch(w, d, fmt.Sprintf(`{"metadata":{"annotations":{%q:%s}}}`, annotation, value))
	}
}

// audit ends a run that has left something in the system, or has lost something.
func audit(w *sim.World) {
	searchDepots(w)
	unowned, missing, err := external.Audit(context.Background(), inventory{w}, func(context.Context) ([]external.Holder, error) {
		var all []external.Holder
		list := sim.List(w, &DepotList{}, "")
		for i := range list.Items {
			all = append(all, external.Holder{Object: &list.Items[i]})
		}
		return all, nil
	})
	if err != nil || len(unowned)+len(missing) > 0 {
		panic(fmt.Sprintf("the audit has found orphans %v, missing %d: %v", unowned, len(missing), err))
	}
}
