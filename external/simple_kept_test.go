// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// A kept is a step of its own that keeps a login for each User, as far as policies allow.
type kept struct {
	logins   *sim.ExternalClient
	watches  []step.Watch
	confirms bool
}

func (k kept) step() step.Step[*User] {
	return step.Step[*User]{Name: "Login", Do: k.Do, Cleanup: k.Cleanup, Watches: func() []step.Watch { return k.watches }}
}

// may resolves the policy: by the cache, and once more by the API server if it allows to act.
func (k kept) may(ctx context.Context, req *request, acts func(policy.Decision) bool) (policy.Decision, error) {
	decision, err := external.ResolvePolicy(ctx, req.Client, req.Object, policy.Defaults{})
	if err != nil || !acts(decision) || !k.confirms {
		return decision, err
	}
	return external.ResolvePolicy(ctx, req.APIReader, req.Object, policy.Defaults{})
}

func (k kept) Do(ctx context.Context, req *request) error {
	if err := req.EnsureFresh(ctx); err != nil {
		return err
	}
	id, spec := req.Object.Name, map[string]string{"name": req.Object.Spec.Name}
	verb, act := policy.VerbUpdate, func() error { return k.logins.Update(ctx, id, spec) }
	now, err := k.logins.Get(ctx, id)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		verb, act = policy.VerbCreate, func() error {
			_, err := k.logins.Create(ctx, sim.Creation{Name: id, Spec: spec, Owner: req.Object.UID})
			return err
		}
	case err != nil:
		return err
	case now.Spec["name"] == spec["name"]:
		// Nothing is to be done, but that depends on the policy, too: a change of it is seen.
		_, err := external.ResolvePolicy(ctx, req.Client, req.Object, policy.Defaults{})
		return err
	}
	decision, err := k.may(ctx, req, func(d policy.Decision) bool { return d.Allows(verb) })
	if err != nil || !decision.Allows(verb) {
		return err
	}
	return act()
}

func (k kept) Cleanup(ctx context.Context, req *request) error {
	decision, err := k.may(ctx, req, func(d policy.Decision) bool { return d.OnDeletion() != policy.DeletionBlocked })
	switch {
	case err != nil:
		return err
	case decision.OnDeletion() == policy.DeletionBlocked:
		return ctrlkit.Wait("a valid policy")
	case decision.OnDeletion() == policy.DeletionDelete:
		if err := k.logins.Delete(ctx, req.Object.Name); !errors.Is(err, sim.ErrNotFound) {
			return err
		}
	}
	return nil
}

// keeping is the workload of an operator with these watches. Confirms says that it asks the API
// server before it acts.
func keeping(t *testing.T, watches []step.Watch, confirms bool) sim.Workload {
	w := workload(t, policies)
	w.Operator = sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
		return complete(mgr, kept{p.External("logins"), watches, confirms}.step())
	})
	return w
}

var noDrift = sim.WithoutFault(fault.Drift, "the operator does not poll, so that a change of a policy has no other event than its own")

// Whatever goes wrong, a login is created, changed and deleted exactly as the annotations of the
// namespace say, and each change of them is acted upon.
func TestPoliciesAreKept(t *testing.T) {
	rings.Test(t, "simulates")
	const stays = "a login that the policy retains, and an object whose deletion waits for a valid policy, are in the way of the next object"
	sim.Run(t, keeping(t, external.PolicyWatches(policy.Defaults{}), true), noDrift,
		sim.WithoutFault(fault.Recreate, stays), sim.WithoutFault(fault.DeleteAndCreate, stays), sim.WithSample(20))
}

// An operator that trusts its cache acts against an annotation that is older than the object, and
// one without the watch does not see that an annotation was removed.
func TestWrongOperatorsAreFound(t *testing.T) {
	rings.Test(t, "simulates")
	for name, wrong := range map[string]sim.Workload{
		"it does not ask the API server": keeping(t, external.PolicyWatches(policy.Defaults{}), false),
		"it does not watch namespaces":   keeping(t, nil, true),
	} {
		t.Run(name, func(t *testing.T) {
			report := sim.Explore(t, wrong, noDrift, sim.WithStopOn(oracle.ScriptRuns))
			if report != nil && len(report.Findings) == 0 {
				t.Errorf("nothing was found in %d plans", len(report.Plans))
			}
		})
	}
}

// policies is what users do: they want names, and say what may be done.
func policies(w *sim.World) {
	obj := user("prod", "b")
	rename := func(name string) {
		sim.Update(w, obj, func(obj *User) { obj.Spec.Name = name })
		w.Settle()
	}
	wants := func(name string) {
		now := "none"
		for _, r := range w.Resources("logins") {
			now = r.Spec["name"]
		}
		if now != name {
			panic("the login has the name " + now + ", want " + name)
		}
	}
	w.Create(obj)
	w.Settle()
	setPolicy(w, prod(), "skip")
	w.Settle()
	rename("2")
	wants("app")
	setPolicy(w, prod(), "") // removed: at once, and nothing else changes
	w.Settle()
	wants("2")
	setPolicy(w, prod(), "mange")
	rename("3")
	wants("2")
	w.Delete(obj)
	w.Sleep(time.Minute)
	wants("2")
	setPolicy(w, prod(), "manage")
	w.Settle()
	wants("none")
	setPolicy(w, prod(), "skip")
	w.Create(user("prod", "c")) // at once: the cache may have the namespace as it was before
	w.Settle()
	wants("none")
}
