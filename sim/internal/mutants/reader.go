// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/step"
)

// The mistakes of an operator that needs the Secret that a Widget names. Nothing in its script
// changes the Secret, so that its end is the right one.
const (
	readsUnwatched      Bug = "reads-unwatched"
	readsUnwatchedLive  Bug = "reads-unwatched-live"
	stepReadsUnwatched  Bug = "step-reads-unwatched"
	readsAndPolls       Bug = "reads-and-polls"        // is none
	stepReadsOnPurpose  Bug = "step-reads-on-purpose"  // is none
	stepReadsUntilLater Bug = "step-reads-until-later" // is none
)

func readerMutants() []Mutant {
	m := func(bug Bug, class string, workload func(Bug) sim.Workload) Mutant {
		return Mutant{
			Bug: bug, Class: class, Published: "wake-ups that never come: objects that wait for a Secret until the next resync",
			CaughtBy: []oracle.Name{oracle.NoLostWakeUp}, Workload: workload,
		}
	}
	return []Mutant{
		m(readsUnwatched, "a Secret is read by its name, and nothing watches Secrets", readerWorkload),
		m(readsUnwatchedLive, "a Secret is read from the API server, and nothing watches Secrets", readerWorkload),
		m(stepReadsUnwatched, "a step waits for a Secret, and the engine does not watch Secrets", stepReaderWorkload),
	}
}

// readerLife is the life of a Widget that needs a Secret.
func readerLife(name string, setup func(mgr ctrl.Manager, p *sim.Process) error) sim.Workload {
	return sim.Workload{
		Name: name, Scheme: scheme, CRDs: definitions, Objects: []client.Object{newSecret()}, Operator: asManager(setup),
		Script: life(func(x *Widget) { x.Spec.Size = 2 }),
	}
}

// readerWorkload has an operator without an engine.
func readerWorkload(bug Bug) sim.Workload {
	return readerLife("reader", func(mgr ctrl.Manager, _ *sim.Process) error {
		r := &secretReader{Client: mgr.GetClient(), secrets: mgr.GetClient(), bug: bug}
		if bug == readsUnwatchedLive {
			r.secrets = mgr.GetAPIReader()
		}
		b := ctrl.NewControllerManagedBy(mgr).For(&Widget{})
		if bug == Right {
			k := &keeper{Client: mgr.GetClient()}
			b = b.Watches(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(k.usersOf))
		}
		return b.Complete(r)
	})
}

// A secretReader says whether the Secret of a Widget is there.
type secretReader struct {
	client.Client
	secrets client.Reader
	bug     Bug
}

func (r *secretReader) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	w := &Widget{}
	if err := r.Get(ctx, req.NamespacedName, w); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := w.DeepCopy().Status
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "SecretFound", ObservedGeneration: w.Generation}
	err := r.secrets.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.Secret}, &corev1.Secret{})
	switch {
	case apierrors.IsNotFound(err):
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, "SecretNotFound", "Secret "+w.Spec.Secret+" does not exist"
	case err != nil:
		return ctrl.Result{}, err
	}
	meta.SetStatusCondition(&w.Status.Conditions, ready)
	w.Status.ObservedGeneration = w.Generation
	result := ctrl.Result{}
	if r.bug == readsAndPolls {
		result.RequeueAfter = patience
	}
	return result, saveStatus(ctx, r, w, before)
}

// stepReaderWorkload has one in steps.
func stepReaderWorkload(bug Bug) sim.Workload {
	return readerLife("step-reader", func(mgr ctrl.Manager, _ *sim.Process) error {
		options := step.Options[*Widget]{Name: "widget", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()}
		if bug == stepReadsOnPurpose {
			options.Unwatched = []client.Object{&corev1.Secret{}}
		}
		read := step.Step[*Widget]{Name: "Secret", Do: func(ctx context.Context, req *step.Request[*Widget]) error {
			_, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: req.Object.Spec.Secret})
			switch polls := bug == stepReadsUntilLater || bug == stepReadsOnPurpose; {
			case polls && len(ctrlkit.Waits(err)) > 0: // only a watch ends the wait
				return ctrlkit.Poll("Secret "+req.Object.Spec.Secret, patience)
			case err == nil && bug == stepReadsUntilLater:
				return ctrlkit.RequeueWithin(patience)
			}
			return err
		}}
		if bug == Right {
			read.Watches = func() []step.Watch {
				return []step.Watch{step.WatchNamed(&corev1.Secret{}, func(w *Widget) []client.ObjectKey { return []client.ObjectKey{{Name: w.Spec.Secret}} })}
			}
		}
		engine, err := step.New(options, read)
		if err != nil {
			return err
		}
		return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Widget{}))
	})
}
