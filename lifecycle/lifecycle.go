// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/permission"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// OperatorAnnotation names the installation of the operator that has claimed an object. Change it
// to hand the object over to another one. If it is removed, the first one that reconciles the
// object claims it, which may be the same.
const OperatorAnnotation = "lifecycle.ctrlkit.dev/operator"

// ConditionManaged shows the policy of an object: its status is True while CreateOrUpdate may be
// called, and its reason is one of package policy. Ready does not depend on it.
const ConditionManaged = "Managed"

// ReasonAnotherOperator is the reason of the Kubernetes event for an object that another
// installation of the operator has claimed.
const ReasonAnotherOperator = "AnotherOperator"

// ReasonNotReleased is the reason of the Kubernetes event for an object whose [Releaser] has failed.
const ReasonNotReleased = "NotReleased"

// Options configure [New]. The zero value manages all objects.
type Options struct {
	// Operator identifies this installation of the operator among others that watch the same
	// objects, such as "prod/mysql-operator". Each object is marked with it when it is claimed,
	// and objects with another mark are left alone. If it is empty, nothing is marked or left
	// alone.
	Operator string

	// Policy is what holds for objects that do not say otherwise, and whose namespace does not.
	Policy policy.Defaults

	// Refresh is how often the status of an object is refreshed whose policy does not allow to
	// change anything, within a tenth of it: see [Spread]. If it is zero, an event does that.
	Refresh time.Duration

	// Watches are those that end the waits of the reconciler, and that show it a change; Conditions
	// are those that it sets; Uses is what it does with objects of other kinds: see package step. A
	// reference of package reference has all three of itself.
	Watches    []step.Watch
	Conditions []condition.Declaration
	Uses       []permission.Use
}

// New returns a step that reconciles objects by r. It is the only step of most engines; what has
// to be there first is a step before it.
func New[T client.Object](name string, r Reconciler[T], options Options) step.Step[T] {
	l := &lifecycle[T]{reconciler: r, options: options}
	l.claimer, _ = r.(Claimer[T])
	l.updater, _ = r.(StatusUpdater[T])
	l.releaser, _ = r.(Releaser[T])
	l.finisher, _ = r.(Finisher[T])
	_, l.checks = r.(VerbChecker[T])
	s := step.Step[T]{
		Name: name, Do: l.do, Cleanup: l.cleanUp, Claim: l.claim, Gate: l.gate,
		Conditions: append([]condition.Declaration{{Type: ConditionManaged, Informational: true}}, options.Conditions...),
		Watches:    func() []step.Watch { return append(PolicyWatches(options.Policy), options.Watches...) },
		Uses:       options.Uses,
		Err:        options.Policy.Check(),
	}
	if l.finisher != nil {
		s.Post = l.finisher.Finish
	}
	return s
}

type lifecycle[T client.Object] struct {
	reconciler Reconciler[T]
	claimer    Claimer[T]
	updater    StatusUpdater[T]
	releaser   Releaser[T]
	finisher   Finisher[T]
	checks     bool // the reconciler checks each verb itself
	options    Options
}

// gate leaves alone what another installation of the operator has claimed.
func (l *lifecycle[T]) gate(obj T) (reason, message string) {
	other := obj.GetAnnotations()[OperatorAnnotation]
	if l.options.Operator == "" || other == "" || other == l.options.Operator {
		return "", ""
	}
	return ReasonAnotherOperator, fmt.Sprintf("annotation %s is %q, and this operator is %q: the object is left alone; change the annotation to hand it over",
		OperatorAnnotation, other, l.options.Operator)
}

// claim resolves the policy, and has the reconciler claim.
func (l *lifecycle[T]) claim(ctx context.Context, req *step.Request[T]) error {
	decision, err := ResolvePolicy(ctx, req.Client, req.Object, l.options.Policy)
	if err != nil {
		return err
	}
	step.Put(req, decisionKey, decision)
	l.mark(req, decision)
	if !l.mayModify(decision) && !decision.Allows(policy.VerbDelete) {
		return step.ErrNothingToClaim
	}
	if !l.checks {
		if err := req.EnsureFresh(ctx); err != nil { // an object that is gone must not be made again
			return err
		}
	}
	if l.claimer != nil {
		if err := l.claimer.Claim(ctx, req); err != nil {
			return err
		}
	}
	if l.options.Operator != "" && req.Object.GetAnnotations()[OperatorAnnotation] == "" {
		annotations := maps.Clone(req.Object.GetAnnotations())
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[OperatorAnnotation] = l.options.Operator
		req.Object.SetAnnotations(annotations)
	}
	return nil
}

// mayModify reports whether CreateOrUpdate is called.
func (l *lifecycle[T]) mayModify(decision policy.Decision) bool {
	if l.checks {
		return decision.Allows(policy.VerbCreate) || decision.Allows(policy.VerbUpdate)
	}
	return decision.Allows(policy.VerbCreate | policy.VerbUpdate)
}

func (l *lifecycle[T]) do(ctx context.Context, req *step.Request[T]) error {
	decision := PolicyOf(req)
	request := decision.Request()
	err := l.act(ctx, req, decision)
	if _, failed := ctrlkit.IgnoreExit(ctrl.Result{}, err); failed == nil && len(ctrlkit.Waits(err)) == 0 {
		request.Acknowledge(policy.StatusOf(req.Object))
	}
	return errors.Join(err, invalid(decision))
}

// act makes what the object stands for, or observes it, as its policy allows.
func (l *lifecycle[T]) act(ctx context.Context, req *step.Request[T], decision policy.Decision) error {
	if l.mayModify(decision) {
		return l.reconciler.CreateOrUpdate(ctx, req)
	}
	if l.updater != nil {
		if err := l.updater.UpdateStatus(ctx, req); err != nil {
			return err
		}
	}
	if l.options.Refresh > 0 {
		return ctrlkit.RequeueWithin(Spread(l.options.Refresh, req.Object))
	}
	return nil
}

// cleanUp removes what the object stands for, or leaves it, as its policy says.
func (l *lifecycle[T]) cleanUp(ctx context.Context, req *step.Request[T]) error {
	decision, err := l.final(ctx, req)
	if err != nil {
		return err
	}
	step.Put(req, decisionKey, decision)
	l.mark(req, decision)
	switch decision.OnDeletion() {
	case policy.DeletionDelete:
		if l.claimer != nil && !l.claimer.Claimed(req.Object) {
			return nil // nothing was ever made
		}
		return l.reconciler.Delete(ctx, req)
	case policy.DeletionDetach:
		req.Logger.Info("What the object stands for is left, as its policy says", "policy", decision.Message())
		if l.releaser != nil && decision.Refusal(policy.VerbUpdate) == "" {
			if err := l.releaser.Release(ctx, req); err != nil { // a policy may keep it because the system does not answer
				req.Event(corev1.EventTypeWarning, ReasonNotReleased, "Delete", "What the object stood for is left, and still marked as its own: %v", err)
			}
		}
		return nil
	default:
		return invalid(decision)
	}
}

// final resolves the policy for a deletion. The API server is asked for the namespace, because a
// stale cache could show one without the annotation that keeps what can't be made again.
func (l *lifecycle[T]) final(ctx context.Context, req *step.Request[T]) (policy.Decision, error) {
	reader := client.Reader(req.Client)
	if req.APIReader != nil {
		reader = req.APIReader
	}
	return ResolvePolicy(ctx, reader, req.Object, l.options.Policy)
}

// mark sets the condition that shows the policy.
func (l *lifecycle[T]) mark(req *step.Request[T], decision policy.Decision) {
	switch {
	case req.Conditions == nil:
	case l.mayModify(decision):
		req.Conditions.MarkHealthy(ConditionManaged, decision.Reason(), decision.Message())
	default:
		req.Conditions.MarkUnhealthy(ConditionManaged, condition.SeverityInfo, decision.Reason(), decision.Message())
	}
}

// invalid returns the failure of an object whose policy a person has to correct.
func invalid(decision policy.Decision) error {
	err := decision.Err()
	if err == nil || errors.Is(err, policy.ErrNamespaceUnknown) {
		return err
	}
	return failure.Terminal(err, decision.Reason(), decision.Remedy())
}
