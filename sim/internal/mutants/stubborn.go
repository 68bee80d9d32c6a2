// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
)

// The mistakes of an operator that keeps a ConfigMap for each Widget. Each needs three faults in one
// run, so that plans with one fault or two do not find it.
const (
	givesUpOnThreeKinds Bug = "gives-up-after-three-kinds-of-errors"
	thirdIsSuccess      Bug = "third-failure-is-success"
	trustsTheDead       Bug = "trusts-the-process-before"
)

// swarmMutants returns the mutants that only a swarm finds.
func swarmMutants() []Mutant {
	m := mutantsOf(stubbornWorkload)
	return []Mutant{
		m(givesUpOnThreeKinds, "the third kind of error since the start is taken for a state that only a person can clear", "circuit breakers that never close", oracle.SameEnd, oracle.SilentWhenIdle),
		m(thirdIsSuccess, "failures are counted in memory, and the third one in a row is taken for a success", "loops of retries whose last error is dropped", oracle.SameEnd, oracle.ReadyWhenDone, oracle.SilentWhenIdle),
		m(trustsTheDead, "a process that finds the failure of the one before takes a refused write for one that the other has sent", "recovery code that runs only after a crash in a retry", oracle.SameEnd, oracle.ReadyWhenDone, oracle.SilentWhenIdle),
	}
}

// stubbornWorkload is the life of a Widget with a ConfigMap.
func stubbornWorkload(bug Bug) sim.Workload {
	return sim.Workload{
		Name: "stubborn", Scheme: scheme, CRDs: definitions,
		Operator: asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
			r := &stubborn{Client: mgr.GetClient(), live: mgr.GetAPIReader(), bug: bug, failures: map[types.NamespacedName]*failures{}}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(&corev1.ConfigMap{}).Complete(r)
		}),
		Script: func(w *sim.World) {
			widget := newWidget()
			w.Create(widget)
			w.Settle()
			sim.Update(w, widget, func(x *Widget) { x.Spec.Size = 5 })
			w.Settle()
		},
	}
}

// stubborn keeps a ConfigMap for each Widget.
type stubborn struct {
	client.Client
	live client.Reader
	bug  Bug

	mu       sync.Mutex
	failures map[types.NamespacedName]*failures
}

// failures are what a process remembers of the failures of a request.
type failures struct {
	kinds   []string // of errors, since the start
	count   int      // since the last success
	resumed bool     // the process before has failed
	begun   bool     // this process has worked on it
	assumed bool     // the ConfigMap is taken for made, or the Widget for hopeless
}

func (r *stubborn) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	seen := r.of(req.NamespacedName)
	if r.bug == givesUpOnThreeKinds && seen.assumed {
		return ctrl.Result{}, nil
	}
	var failure error // the status says that there is one, and not which: it changes once
	result, err := reconcileReady(ctx, r, req, func(ctx context.Context, w *Widget) (ready metav1.Condition, _ error) {
		if ready, failure = r.keep(ctx, w, seen); failure != nil {
			ready = metav1.Condition{Status: metav1.ConditionFalse, Reason: "Failed", Message: "the ConfigMap can't be written"}
		}
		return ready, nil
	})
	err = cmp.Or(failure, err)
	kind := reason(err)
	if failure == nil {
		kind += " of the status"
	}
	if r.bug == givesUpOnThreeKinds && isRefusal(err) && !slices.Contains(seen.kinds, kind) {
		seen.kinds = append(seen.kinds, kind)
		if seen.assumed = len(seen.kinds) == 3; seen.assumed {
			return ctrl.Result{}, nil
		}
	}
	return result, err
}

// of returns what is remembered of a request. There is one worker.
func (r *stubborn) of(name types.NamespacedName) *failures {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failures[name] == nil {
		r.failures[name] = &failures{}
	}
	return r.failures[name]
}

// isRefusal reports whether an error says that the server did not do what it was asked for, though
// the request was right.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInternalError(err) || apierrors.IsInvalid(err) || apierrors.IsTooManyRequests(err)
}

// keep makes the ConfigMap what it should be.
func (r *stubborn) keep(ctx context.Context, w *Widget, seen *failures) (metav1.Condition, error) {
	ready := metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "the ConfigMap is there"}
	if !seen.begun {
		last := meta.FindStatusCondition(w.Status.Conditions, "Ready")
		seen.begun, seen.resumed = true, last != nil && last.Reason == "Failed"
	}
	if seen.assumed {
		return ready, nil
	}
	err := r.write(ctx, w)
	switch {
	case err == nil:
		seen.count = 0
	case apierrors.IsAlreadyExists(err):
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: nameTaken, Message: "the ConfigMap is not ours"}, nil
	case !isRefusal(err):
	case r.bug == thirdIsSuccess:
		seen.count++
		if seen.assumed = seen.count == 3; seen.assumed {
			return ready, nil
		}
	case r.bug == trustsTheDead && seen.resumed:
		seen.assumed = true
		return ready, nil
	}
	return ready, err
}

// write creates or updates the ConfigMap. It returns AlreadyExists if another one has its name.
func (r *stubborn) write(ctx context.Context, w *Widget) error {
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name}, Data: map[string]string{"size": strconv.Itoa(int(w.Spec.Size))}}
	if err := ctrl.SetControllerReference(w, wanted, r.Scheme()); err != nil {
		return err
	}
	current := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		if err = r.Create(ctx, wanted); !apierrors.IsAlreadyExists(err) {
			return err
		}
		err = r.live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	}
	switch {
	case err != nil:
		return err
	case !metav1.IsControlledBy(current, w):
		return apierrors.NewAlreadyExists(corev1.Resource("configmaps"), wanted.Name)
	case maps.Equal(current.Data, wanted.Data):
		return nil
	}
	current.Data = wanted.Data
	return r.Update(ctx, current)
}
