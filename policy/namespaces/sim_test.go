// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package namespaces_test

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
	"github.com/ctrlkit/ctrlkit/internal/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/policy/namespaces"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
	"github.com/ctrlkit/ctrlkit/step"
)

// A kept is a step that keeps a bucket for each ConfigMap, as far as policies allow.
type kept struct {
	buckets *sim.ExternalClient
	watches []step.Watch

	confirms bool
}

func (kept) Name() string            { return "Bucket" }
func (k kept) Watches() []step.Watch { return k.watches }

// may resolves the policy: by the cache, and once more by the API server if it allows to act.
func (k kept) may(ctx context.Context, req *step.Request[*corev1.ConfigMap], acts func(policy.Decision) bool) (policy.Decision, error) {
	decision, err := namespaces.Resolve(ctx, req.Client, req.Object, policy.Defaults{})
	if err != nil || !acts(decision) || !k.confirms {
		return decision, err
	}
	return namespaces.Resolve(ctx, req.APIReader, req.Object, policy.Defaults{})
}

func (k kept) Do(ctx context.Context, req *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	if err := req.EnsureFresh(ctx); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	verb, act := policy.VerbUpdate, func() error { return k.buckets.Update(ctx, req.Object.Name, req.Object.Data) }
	now, err := k.buckets.Get(ctx, req.Object.Name)
	switch {
	case errors.Is(err, sim.ErrNotFound):
		verb, act = policy.VerbCreate, func() error {
			_, err := k.buckets.Create(ctx, sim.Creation{Name: req.Object.Name, Spec: req.Object.Data, Owner: req.Object.UID})
			return err
		}
	case err != nil:
		return ctrlkit.RequeueIfError(err)
	case now.Spec["size"] == req.Object.Data["size"]:
		// Nothing is to be done, but that depends on the policy, too: a change of it is seen.
		_, err := namespaces.Resolve(ctx, req.Client, req.Object, policy.Defaults{})
		return ctrlkit.RequeueIfError(err)
	}
	decision, err := k.may(ctx, req, func(d policy.Decision) bool { return d.Allows(verb) })
	if err != nil || !decision.Allows(verb) {
		return ctrlkit.RequeueIfError(err)
	}
	return ctrlkit.RequeueIfError(act())
}

func (k kept) Cleanup(ctx context.Context, req *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	decision, err := k.may(ctx, req, func(d policy.Decision) bool { return d.OnDeletion() != policy.DeletionBlocked })
	switch {
	case err != nil:
		return ctrlkit.RequeueIfError(err)
	case decision.OnDeletion() == policy.DeletionBlocked:
		return ctrlkit.WaitFor("a valid policy")
	case decision.OnDeletion() == policy.DeletionDelete:
		if err := k.buckets.Delete(ctx, req.Object.Name); err != nil && !errors.Is(err, sim.ErrNotFound) {
			return ctrlkit.RequeueIfError(err)
		}
	}
	return ctrlkit.NoRequeue()
}

// workload is an operator of buckets, with these watches. Confirms says that it asks the API server
// before it acts.
func workload(watches []step.Watch, confirms bool) sim.Workload {
	return sim.Workload{
		Objects:   []client.Object{namespace("prod")},
		Externals: []sim.External{{Name: "buckets", Identity: sim.IdentityName}},
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			engine, err := step.New(step.Options[*corev1.ConfigMap]{
				Name: "buckets", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), SkipUnchanged: true, Finalizer: "example.com/buckets",
			}, kept{p.External("buckets"), watches, confirms})
			if err != nil {
				return err
			}
			return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}))
		}),
		Script: script,
	}
}

var noDrift = sim.WithoutFault(fault.Drift, "the operator does not poll, so that a change of a policy has no other event than its own")

// Whatever goes wrong, a bucket is created, changed and deleted exactly as the annotations of the
// namespace say, and each change of them is acted upon.
func TestSurvivesEverything(t *testing.T) {
	rings.Test(t, "simulates")
	sim.Run(t, workload(namespaces.Watches(policy.Defaults{}), true), noDrift, sim.WithSample(40))
}

// An operator that trusts its cache acts against an annotation that is older than the object, and
// one without the watch does not see that an annotation was removed.
func TestWrongOperatorsAreFound(t *testing.T) {
	rings.Test(t, "simulates")
	for name, wrong := range map[string]sim.Workload{
		"it does not ask the API server": workload(namespaces.Watches(policy.Defaults{}), false),
		"it does not watch namespaces":   workload(nil, true),
	} {
		t.Run(name, func(t *testing.T) {
			report := sim.Explore(t, wrong, noDrift, sim.WithStopOn(oracle.ScriptRuns))
			if report != nil && len(report.Findings) == 0 {
				t.Errorf("nothing was found in %d plans", len(report.Plans))
			}
		})
	}
}

// script is what users do: they want sizes, and say what may be done.
func script(w *sim.World) {
	annotate := func(name, value string) {
		sim.Update(w, namespace("prod"), func(ns *corev1.Namespace) {
			if delete(ns.Annotations, name); value != "" {
				metav1.SetMetaDataAnnotation(&ns.ObjectMeta, name, value)
			}
		})
		w.Settle()
	}
	resize := func(size string) {
		sim.Update(w, named("prod/b"), func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"size": size} })
		w.Settle()
	}
	wants := func(size string) {
		now := "none"
		for _, r := range w.Resources("buckets") {
			now = r.Spec["size"]
		}
		if now != size {
			panic("the bucket has size " + now + ", want " + size)
		}
	}
	bucket := named("prod/b")
	bucket.Data = map[string]string{"size": "1"}
	w.Create(bucket)
	w.Settle()
	annotate(policy.ReconcileAnnotation, "skip")
	resize("2")
	wants("1")
	annotate(policy.ReconcileAnnotation, "") // removed: at once, and nothing else changes
	wants("2")
	annotate(policy.ReclaimAnnotation, "retian")
	resize("3")
	wants("2")
	w.Delete(bucket)
	w.Sleep(time.Minute)
	wants("2")
	annotate(policy.ReclaimAnnotation, "delete")
	wants("none")
	sim.Update(w, namespace("prod"), func(ns *corev1.Namespace) {
		metav1.SetMetaDataAnnotation(&ns.ObjectMeta, policy.ReconcileAnnotation, "skip")
	})
	w.Create(named("prod/c")) // at once: the cache may have the namespace as it was before
	w.Settle()
	wants("none")
}
