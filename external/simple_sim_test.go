// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/cluster/testkind"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// A database keeps users in an external system of the simulator. Their names are made of the UIDs
// of the objects.
type database struct{ logins *sim.ExternalClient }

// step has no Claimed: another client may have removed the annotation, and the name is known without it.
func (d database) step() step.Step[*User] {
	return external.Simple("User", external.Funcs[*User]{
		Claim: d.claim, CreateOrUpdate: d.createOrUpdate, UpdateStatus: d.updateStatus, Delete: d.delete, Operator: "us", Refresh: poll,
	})
}

const (
	callTime = time.Minute      // a call may hang
	poll     = 30 * time.Second // after which what others have changed is repaired
)

func loginOf(obj *User) string { return "login-" + string(obj.UID) }

// claim writes the name down.
func (database) claim(_ context.Context, req *request) error {
	metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimed, loginOf(req.Object))
	return nil
}

func (d database) createOrUpdate(ctx context.Context, req *request) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	wanted := map[string]string{"name": req.Object.Spec.Name}
	found, err := d.logins.Get(ctx, loginOf(req.Object))
	switch {
	case errors.Is(err, sim.ErrNotFound):
		_, err = d.logins.Create(ctx, sim.Creation{Name: loginOf(req.Object), Spec: wanted, Owner: req.Object.UID})
	case err == nil && found.Spec["name"] != wanted["name"]:
		err = d.logins.Update(ctx, found.ID, wanted)
	}
	if err != nil {
		return err
	}
	req.Object.Status.Observed = wanted["name"]
	return ctrlkit.RequeueWithin(poll)
}

func (d database) updateStatus(ctx context.Context, req *request) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	found, err := d.logins.Get(ctx, loginOf(req.Object))
	if errors.Is(err, sim.ErrNotFound) {
		req.Object.Status.Observed = ""
		return nil
	}
	if err == nil {
		req.Object.Status.Observed = found.Spec["name"]
	}
	return err
}

func (d database) delete(ctx context.Context, req *request) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := d.logins.Delete(ctx, loginOf(req.Object))
	if errors.Is(err, sim.ErrNotFound) {
		if time.Since(req.Object.CreationTimestamp.Time) < 2*callTime {
			return ctrlkit.Poll("a creation that a former process may have begun", callTime)
		}
		err = nil
	}
	return err
}

// workload is that of an operator with a script.
func workload(t *testing.T, script func(w *sim.World)) sim.Workload {
	t.Helper()
	return sim.Workload{
		Name: t.Name(), Scheme: scheme, CRDs: testkind.Files(t, userKind), Externals: []sim.External{{Name: "logins", Identity: sim.IdentityName}},
		Objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}},
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return complete(mgr, database{p.External("logins")}.step())
		}),
		Script: script,
	}
}

// complete adds the controller of an engine with a step to a manager.
func complete(mgr ctrl.Manager, s step.Step[*User]) error {
	engine, err := step.New(step.Options[*User]{Name: "users", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true}, s)
	if err != nil {
		return err
	}
	return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&User{}))
}

const reconcileAnnotation = "policy.ctrlkit.dev/reconcile"

// setPolicy changes the policy of an object; an empty value removes it.
func setPolicy[T client.Object](w *sim.World, obj T, value string) {
	sim.Update(w, obj, func(obj T) {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		if annotations[reconcileAnnotation] = value; value == "" {
			delete(annotations, reconcileAnnotation)
		}
		obj.SetAnnotations(annotations)
	})
}

// A life under policies of which the object has the last word leaves nothing outside, and makes
// nothing twice, whatever goes wrong. In between, an invalid policy of the namespace stops all.
func TestNothingLeaks(t *testing.T) {
	rings.Test(t, "simulates")
	obj := user("prod", "a")
	sim.Run(t, workload(t, func(w *sim.World) {
		rename := func(name string) { sim.Update(w, obj, func(obj *User) { obj.Spec.Name = name }) }
		w.Create(obj)
		w.Settle()
		rename("second")
		w.Settle()
		rename("third") // first, because with the policy no deletion ends, and a fault may delete the object
		setPolicy(w, prod(), "mange")
		w.Sleep(2 * time.Minute) // without a comparison: what others change meanwhile is not repaired
		setPolicy(w, prod(), "")
		w.Settle()
		setPolicy(w, obj, "manage")
		setPolicy(w, prod(), "skip")
		rename("fourth")
		w.Settle()
		w.Delete(obj)
		w.Settle()
	}), sim.WithPairs(2*(*pairs)), sim.WithSample(20))
}

// An object is skipped for a while, managed again, and detached: what the policy keeps stays, is
// what the object wanted last, and exists once.
func TestWhatIsDetachedStays(t *testing.T) {
	rings.Test(t, "simulates")
	const kept = "an object that is deleted while its policy keeps what it stands for leaves that"
	obj := user("prod", "a")
	sim.Run(t, workload(t, func(w *sim.World) {
		w.Create(obj)
		w.Settle()
		setPolicy(w, obj, "skip")
		sim.Update(w, obj, func(obj *User) { obj.Spec.Name = "second" })
		w.Sleep(2 * time.Minute) // without a comparison: what others change meanwhile is not repaired
		setPolicy(w, obj, "")
		w.Settle()
		setPolicy(w, obj, "detach-on-delete")
		w.Settle()
		w.Delete(obj)
		w.Settle()
		if all := w.Resources("logins"); len(all) != 1 || all[0].Spec["name"] != "second" {
			t.Errorf("there is %v", all)
		}
	}), sim.WithPairs(2*(*pairs)), sim.WithSample(20), sim.WithoutOracle(oracle.NoLeak, kept),
		sim.WithoutFault(fault.Recreate, kept), sim.WithoutFault(fault.DeleteAndCreate, kept))
}
