// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// oracleCase is an operator with one mistake, that an oracle has to find, and its right twin, in
// which no oracle may find anything.
type oracleCase struct {
	plan  string // without one, the mistake shows without a fault
	twins func(wrong bool) Workload
	want  string // the beginning of what the oracle says about the wrong one
}

// Every oracle finds what it is for in a whole run, and nothing in a run of the right twin. That
// each decides rightly in every detail is tested where it is, in package judge.
var oracleCases = map[oracle.Name]oracleCase{
	oracle.Allowed: {twins: permissionTwins, want: missingRule},
	oracle.SameEnd: {
		plan: "refuse write 1: 500",
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			err := o.createChild(ctx)
			if wrong {
				return nil // and no one tries again
			}
			return err
		}),
		want: "at checkpoint 1 of 4, the world is not what it is without the fault:\n  - configmaps default/x-child is missing",
	},
	oracle.SilentWhenIdle: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			if o.started || o.obj.Status.Replicas == 7 && !wrong {
				return nil
			}
			o.started = true
			o.obj.Status.Replicas = 7 + o.obj.Status.Replicas
			return o.Status().Update(ctx, o.obj)
		}),
		plan: "resync and restart at checkpoint 1",
		want: "a restart of the idle operator caused: update deployments.apps default/x status",
	},
	oracle.NoNoopWrites: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			if o.obj.Status.Replicas == 7 && !wrong {
				return nil
			}
			o.obj.Status.Replicas = 7
			return o.Status().Update(ctx, o.obj)
		}),
		plan: "resync and restart at checkpoint 1",
		want: "a resync of the idle operator caused a write that changes nothing: update deployments.apps default/x status",
	},
	oracle.BecomesIdle: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			o.requeueAfter = time.Minute / 2 // to look, which is right
			at := time.Now().Truncate(time.Minute / 2).String()
			if !wrong || o.obj.Annotations["at"] == at {
				return nil
			}
			o.obj.Annotations = map[string]string{"at": at}
			return o.Update(ctx, o.obj)
		}),
		want: "the operator has not become idle within 6h0m0s",
	},
	oracle.OneExternal: {
		plan:  "crash after call 4",
		twins: keepsBucket(mistakes{noLookup: true}),
		want:  "2 resources of buckets were created for deployments.apps default/x, without the fault 1",
	},
	oracle.NoLeak: {
		twins: keepsBucket(mistakes{noCleanup: true}),
		want:  "deployments.apps default/x is gone, its external resource buckets-1 of buckets is not",
	},
	oracle.FinalizerFirst: {
		twins: keepsBucket(mistakes{lateFinalizer: true}),
		want:  "buckets create x: deployments.apps default/x has no finalizer",
	},
	oracle.SaysWhy: {
		plan:  "outage from call 4 until idle",
		twins: keepsBucket(mistakes{silent: true}),
		want:  "buckets does not answer, deployments.apps default/x can't continue, and no condition of it says so",
	},
	oracle.ForeignUntouched: {
		plan: "occupy the name before write 1",
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			err := o.createChild(ctx)
			if !errors.Is(err, errTaken) || !wrong {
				return err
			}
			return o.Delete(ctx, o.child())
		}),
		want: "delete configmaps default/x-child: the object was created by another client",
	},
	oracle.SameWork: {
		plan: "crash after write 1",
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			begins := !o.started
			o.started = true
			if wrong && begins && o.Get(ctx, client.ObjectKeyFromObject(o.child()), o.child()) == nil {
				return o.Delete(ctx, o.child()) // to begin with a new one
			}
			return o.createChild(ctx)
		}),
		want: "configmaps default/x-child was ",
	},
	oracle.ObservedGeneration: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			observed := o.obj.Generation
			if wrong {
				observed = 10 - observed
			}
			if o.obj.Status.ObservedGeneration == observed {
				return nil
			}
			o.obj.Status.ObservedGeneration = observed
			return o.Status().Update(ctx, o.obj)
		}),
		want: "deployments.apps default/x: status.observedGeneration fell from 9 to 8",
	},
	oracle.ConditionsStay: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			kind := appsv1.DeploymentAvailable
			if wrong && o.obj.Generation > 1 {
				kind = appsv1.DeploymentReplicaFailure
			}
			return o.condition(ctx, kind, corev1.ConditionTrue, false)
		}),
		want: "deployments.apps default/x: condition Available has vanished",
	},
	oracle.TransitionTime: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			return o.condition(ctx, appsv1.DeploymentAvailable, corev1.ConditionTrue, wrong && o.obj.Generation > 1)
		}),
		want: "deployments.apps default/x: lastTransitionTime of condition Available moved, its status stayed True",
	},
	oracle.BoundedRequests: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			if wrong {
				o.requeueAfter = time.Millisecond
			}
			return o.live.Get(ctx, client.ObjectKeyFromObject(o.obj), &appsv1.Deployment{})
		}),
		want: "more than 2000 requests: the operator does not stop working",
	},
	oracle.NoGoroutineLeft: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			lasts := time.Second
			if wrong {
				lasts = 2 * time.Hour // but not for ever, so that the bubble ends
			}
			go func() { time.Sleep(lasts) }()
			return nil
		}),
		want: "2 goroutines are left after the operator has ended, they are:\n",
	},
	oracle.NoPanic: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			if wrong && !o.started {
				o.started = true
				panic("a bug")
			}
			return nil
		}),
		want: "the operator panicked, and controller-runtime recovered it:",
	},
	oracle.NoLostWakeUp: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			if !wrong {
				o.requeueAfter = time.Hour
			}
			return o.Get(ctx, client.ObjectKey{Namespace: "default", Name: "credentials"}, &corev1.Secret{})
		}),
		want: "controller deployment has read secrets default/credentials at sim/oracles_test.go:",
	},
	oracle.NoSecret: {
		twins: oneMistake(func(ctx context.Context, o *operation, wrong bool) error {
			o.requeueAfter = time.Hour // nothing watches Secrets
			secret := &corev1.Secret{}
			if err := o.Get(ctx, client.ObjectKey{Namespace: "default", Name: "credentials"}, secret); err != nil {
				return err
			}
			if wrong {
				ctrl.LoggerFrom(ctx).Info("using", "password", string(secret.Data["password"]))
			}
			ctrl.LoggerFrom(ctx).Info("using", "secret", secret.Name)
			return nil
		}),
		want: "a value of a Secret appears in the log",
	},
	oracle.OperatorRuns: {
		twins: func(wrong bool) Workload {
			w := deploymentWorkload(nil)
			w.Operator = func(ctx context.Context, _ *Process) error {
				if wrong {
					return errors.New("no more")
				}
				<-ctx.Done()
				return nil
			}
			return w
		},
		want: "the operator ended by itself, without a fault: no more",
	},
	oracle.Mended: {twins: recordedTwins, want: "ConfigMap shop/app ends as it was recorded: being deleted"},
	oracle.ScriptRuns: {
		twins: func(wrong bool) Workload {
			w := deploymentWorkload(func(context.Context, *operation) error { return nil })
			script := w.Script
			w.Script = func(w *World) {
				script(w)
				if wrong {
					w.SleepUntil(time.Second)
				}
			}
			return w
		},
		want: "sleeping until 1s: that was ",
	},
}

func TestOracles(t *testing.T) {
	rings.Test(t, "simulates for a while")
	for name, c := range oracleCases {
		t.Run(string(name), func(t *testing.T) {
			violations, trace := violationsOf(t, c.twins(true), c.plan)
			found := false
			for _, v := range violations {
				found = found || v.Oracle == name && strings.HasPrefix(v.Text, c.want)
			}
			if !found {
				t.Errorf("the wrong operator: got %v, want %s: %s\n%s", violations, name, c.want, trace)
			}
			violations, trace = violationsOf(t, c.twins(false), c.plan)
			if len(violations) > 0 {
				t.Errorf("the right operator is accused: %v\n%s", violations, trace)
			}
		})
	}
}

// violationsOf runs a plan of a workload in this process.
func violationsOf(t *testing.T, w Workload, text string) (violations []oracle.Violation, trace string) {
	t.Helper()
	plan := mustParse(t, text)[0]
	ref, result, err := findReference(t, &w, nil, newSettings(nil))
	if err != nil {
		t.Fatal(err)
	}
	if ref != nil && text != "" {
		if result, err = runPlan(t, &w, nil, plan, ref, oracleSet{}); err != nil {
			t.Fatal(err)
		}
		for i, fired := range result.fired {
			if !fired {
				t.Errorf("the run never came to the place of %q:\n%s", plan.Faults[i], result.trace)
			}
		}
	}
	return result.violations, result.trace.String() + strings.Join(result.trace.Logs(), "\n")
}

// ofTransitions are the oracles of operators that run as processes. Their cases are in
// TestTransitionBugs of package program.
var ofTransitions = []oracle.Name{oracle.SameAsFresh, oracle.Recovers, oracle.MistakeReported}

// Each name of package oracle has a case above: an oracle without one could be broken, and no test
// would fail.
func TestEveryOracleIsTested(t *testing.T) {
	for _, name := range oracle.Names() {
		if _, ok := oracleCases[name]; ok == slices.Contains(ofTransitions, name) {
			t.Errorf("%s has no case in oracleCases, or is one of transitions", name)
		}
	}
	if len(oracleCases)+len(ofTransitions) != len(oracle.Names()) {
		t.Errorf("%d cases for %d oracles", len(oracleCases), len(oracle.Names()))
	}
}

// operation is one reconcile of a Deployment, and what its controller has and knows.
type operation struct {
	client.Client
	live         client.Reader
	buckets      *ExternalClient
	obj          *appsv1.Deployment
	requeueAfter time.Duration
	started      bool // is kept from reconcile to reconcile
}

func newDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}}},
		},
	}}
}

// deploymentWorkload is the life of a Deployment x, with an operator that does something to it.
func deploymentWorkload(do func(ctx context.Context, o *operation) error) Workload {
	x := newDeployment()
	return Workload{
		Players: player.None(), // the operator is the controller of Deployments
		Objects: []client.Object{&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "credentials", Namespace: "default"}, StringData: map[string]string{"password": "correct horse"},
		}},
		Externals: []External{{Name: "buckets", Identity: IdentityTag}},
		Operator: Manager(func(mgr ctrl.Manager, p *Process) error {
			o := &operation{Client: mgr.GetClient(), live: mgr.GetAPIReader(), buckets: p.External("buckets")}
			return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					o.obj, o.requeueAfter = &appsv1.Deployment{}, 0
					if err := o.Get(ctx, req.NamespacedName, o.obj); err != nil {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					err := do(ctx, o)
					return ctrl.Result{RequeueAfter: o.requeueAfter}, err
				}))
		}),
		Script: func(w *World) {
			w.Create(x)
			w.Settle()
			Update(w, x, func(x *appsv1.Deployment) { x.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
			w.Settle()
			w.Delete(x)
			w.Settle()
		},
	}
}

// oneMistake returns an operator that does something, and its twin. Neither does anything during a
// deletion.
func oneMistake(do func(ctx context.Context, o *operation, wrong bool) error) func(wrong bool) Workload {
	return func(wrong bool) Workload {
		return deploymentWorkload(func(ctx context.Context, o *operation) error {
			if o.obj.DeletionTimestamp != nil {
				return nil
			}
			return do(ctx, o, wrong)
		})
	}
}

// errTaken is what createChild returns when the object of that name is another one's.
var errTaken = errors.New("the name of the child is taken")

func (o *operation) child() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.obj.Name + "-child", Namespace: o.obj.Namespace}}
}

// createChild creates the child unless it is there.
func (o *operation) createChild(ctx context.Context) error { return o.ensure(ctx, o.child()) }

func (o *operation) ensure(ctx context.Context, child *corev1.ConfigMap) error {
	err := o.Get(ctx, client.ObjectKeyFromObject(child), child)
	switch {
	case err == nil && !metav1.IsControlledBy(child, o.obj):
		return errTaken
	case client.IgnoreNotFound(err) != nil:
		return err
	case err == nil:
		return nil
	}
	if err := ctrl.SetControllerReference(o.obj, child, o.Scheme()); err != nil {
		return err
	}
	return o.Create(ctx, child)
}

// condition makes a condition the only one, with the present as the time of its transition if it is
// new, has changed, or moves is set.
func (o *operation) condition(ctx context.Context, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, moves bool) error {
	now := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: "Because", LastTransitionTime: metav1.Now()}
	if conditions := o.obj.Status.Conditions; len(conditions) == 1 && conditions[0].Type == kind && conditions[0].Status == status {
		if !moves || o.obj.Status.ObservedGeneration == o.obj.Generation {
			return nil
		}
	}
	o.obj.Status.Conditions, o.obj.Status.ObservedGeneration = []appsv1.DeploymentCondition{now}, o.obj.Generation
	return o.Status().Update(ctx, o.obj)
}

// mistakes are those of an operator with a resource outside the cluster.
type mistakes struct{ noLookup, noCleanup, lateFinalizer, silent bool }

// keepsBucket returns an operator that keeps a resource outside the cluster for each Deployment,
// with mistakes, and its right twin.
func keepsBucket(m mistakes) func(wrong bool) Workload {
	return func(wrong bool) Workload {
		made := mistakes{}
		if wrong {
			made = m
		}
		return deploymentWorkload(func(ctx context.Context, o *operation) error { return o.keepBucket(ctx, made) })
	}
}

const bucketFinalizer = "test.ctrlkit.dev/bucket"

func (o *operation) keepBucket(ctx context.Context, m mistakes) error {
	mine, err := o.buckets.FindByTag(ctx, "owner", string(o.obj.UID))
	if o.obj.DeletionTimestamp == nil {
		status := corev1.ConditionTrue
		if !m.silent && (err != nil || len(mine) == 0) {
			status = corev1.ConditionFalse
		}
		if conditionErr := o.condition(ctx, appsv1.DeploymentAvailable, status, false); conditionErr != nil {
			return conditionErr
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("looking for the bucket: %w", err)
	case o.obj.DeletionTimestamp != nil:
		return o.deleteBucket(ctx, mine, m)
	case len(o.obj.Finalizers) == 0 && !m.lateFinalizer:
		o.obj.Finalizers = []string{bucketFinalizer}
		return o.Update(ctx, o.obj)
	case m.noLookup && !o.started, len(mine) == 0:
		o.started = true
		if _, err := o.buckets.Create(ctx, Creation{Name: o.obj.Name, Tags: map[string]string{"owner": string(o.obj.UID)}, Owner: o.obj.UID}); err != nil {
			return err
		}
		return o.condition(ctx, appsv1.DeploymentAvailable, corev1.ConditionTrue, false)
	}
	return nil
}

func (o *operation) deleteBucket(ctx context.Context, mine []Resource, m mistakes) error {
	if m.noCleanup {
		mine = nil
	}
	for _, r := range mine {
		if err := o.buckets.Delete(ctx, r.ID); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	o.obj.Finalizers = nil
	return client.IgnoreNotFound(o.Update(ctx, o.obj))
}
