// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

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
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// operatorAnnotation names the installation of the operator that has claimed an object. Who changes
// it hands the object over to another one. If it is removed, the first one that reconciles the
// object claims it, which may be the same.
const operatorAnnotation = "lifecycle.ctrlkit.dev/operator"

// conditionManaged shows the policy of an object: its status is True while CreateOrUpdate may be
// called, and its reason is one of package policy. Ready does not depend on it.
const conditionManaged = "Managed"

// Reasons of Kubernetes events.
const (
	reasonAnotherOperator = "AnotherOperator" // another installation of the operator has claimed the object
	reasonNotReleased     = "NotReleased"     // Release has failed
)

// Funcs are what [Simple] calls to make what an object stands for as its spec wants it, and to
// remove it. CreateOrUpdate and Delete are required. Of the others, what is nil does not exist.
// One value serves all objects, at the same time.
//
//   - Each is idempotent: it is called again after every error, crash and change.
//   - Each may change the metadata and the status of req.Object, which the engine writes at the
//     end of the reconcile, also after an error, if they have changed. Req.Save writes them at
//     once.
//   - An error makes Ready false, with the reason, the severity, the remedy and the backoff that
//     failure.Mark gives it. A wait is no error.
//   - [PolicyOf] returns what they may do.
type Funcs[T client.Object] struct {
	// CreateOrUpdate makes what the object stands for. Called for an object that is not being
	// deleted, whose claim and finalizer are written, if its policy allows to create and to
	// update.
	CreateOrUpdate func(ctx context.Context, req *step.Request[T]) error

	// Delete removes it. Called for an object that is being deleted, if it was claimed and its
	// policy allows to delete. When Delete passes, the finalizer is removed. It must not fail when
	// there is nothing to remove.
	Delete func(ctx context.Context, req *step.Request[T]) error

	// Claim finds out something, or writes something down, before anything is made: whether the
	// owner exists, the name or the id that will be used. It returns nil if CreateOrUpdate may
	// follow. What it has changed of the metadata is written before that, in one patch with the
	// finalizer. An error or a wait ends the reconcile, and an object without the finalizer gets
	// none: it can be deleted at once.
	//
	// Called before each CreateOrUpdate, so that it claims again what has changed. Where the
	// policy allows to delete and not to create or update, it is called before UpdateStatus: what
	// exists has to be known when the object is deleted.
	//
	// It waits for an object with step.GetOrWait, and Watches has the watch that ends the wait.
	// With [step.ErrNothingToClaim], CreateOrUpdate is called, and nothing is written before: it
	// makes nothing that has to be removed.
	Claim func(ctx context.Context, req *step.Request[T]) error

	// Claimed reports whether the object was ever claimed, by what Claim has written. There is
	// nothing to delete for an object that was not: an admission policy may have given it the
	// finalizer. Nil is true for all, and is right for a Claim that writes nothing, and for one
	// whose name or id is known without what it has written, because it is made of the UID:
	// another client may have removed an annotation.
	Claimed func(obj T) bool

	// UpdateStatus observes what the object stands for. Called for an object that is not being
	// deleted, instead of CreateOrUpdate, if its policy does not allow that. It changes nothing
	// outside the status of req.Object.
	UpdateStatus func(ctx context.Context, req *step.Request[T]) error

	// Release says outside the cluster that what the object stands for has no owner any more.
	// Called instead of Delete for an object that is being deleted, if its policy keeps what it
	// stands for. An error is reported in a Kubernetes event, and prevents nothing.
	Release func(ctx context.Context, req *step.Request[T]) error

	// ChecksVerbs says that CreateOrUpdate asks [PolicyOf] before it creates, and before it updates:
	// it is called if one of the two is allowed. It also calls req.EnsureFresh before it creates,
	// which costs a live read after a restart, and not for what exists.
	ChecksVerbs bool

	// Operator and Policy are as in [Options].
	Operator string
	Policy   policy.Defaults

	// Refresh is how often the status of an object is refreshed whose policy does not allow to
	// change anything, within a tenth of it: each object has its own time. If it is zero, an event
	// does that.
	Refresh time.Duration

	// Watches are those that end the waits, and that show a change; Conditions are those that the
	// functions set. A reference of package reference has both of itself.
	Watches    []step.Watch
	Conditions []condition.Declaration
}

// Simple returns a step that reconciles objects by functions. It is the only step of most engines;
// what has to be there first is a step before it. A function that is missing is an error of
// step.New. What else a step has, such as Uses and Post, may be set in what is returned.
func Simple[T client.Object](name string, funcs Funcs[T]) step.Step[T] {
	l := &lifecycle[T]{funcs}
	return step.Step[T]{
		Name: name, Do: l.do, Cleanup: l.cleanUp, Claim: l.claim, Gate: l.gate,
		Conditions: append([]condition.Declaration{{Type: conditionManaged, Informational: true}}, funcs.Conditions...),
		Watches:    func() []step.Watch { return append(PolicyWatches(funcs.Policy), funcs.Watches...) },
		Err:        errors.Join(funcs.check(name), funcs.Policy.Check()),
	}
}

// check returns an error if a function is missing.
func (f *Funcs[T]) check(name string) error {
	switch {
	case f.CreateOrUpdate == nil || f.Delete == nil:
		return fmt.Errorf("%s has no CreateOrUpdate, or no Delete: both are required", name)
	case f.Claimed != nil && f.Claim == nil:
		return fmt.Errorf("%s has Claimed, and no Claim that could have claimed an object", name)
	}
	return nil
}

// A lifecycle is claim, create or update, delete and refresh under a policy: the floor of [Simple]
// and of [New].
type lifecycle[T client.Object] struct{ Funcs[T] }

// gate leaves alone what another installation of the operator has claimed.
func (l *lifecycle[T]) gate(obj T) (reason, message string) {
	other := obj.GetAnnotations()[operatorAnnotation]
	if l.Operator == "" || other == "" || other == l.Operator {
		return "", ""
	}
	return reasonAnotherOperator, fmt.Sprintf("annotation %s is %q, and this operator is %q: the object is left alone; change the annotation to hand it over",
		operatorAnnotation, other, l.Operator)
}

// claim resolves the policy, and claims.
func (l *lifecycle[T]) claim(ctx context.Context, req *step.Request[T]) error {
	decision, err := ResolvePolicy(ctx, req.Client, req.Object, l.Policy)
	if err != nil {
		return err
	}
	step.Put(req, policyKey, decision)
	l.mark(req, decision)
	if !l.mayModify(decision) && !decision.Allows(policy.VerbDelete) {
		return step.ErrNothingToClaim
	}
	if !l.ChecksVerbs {
		if err := req.EnsureFresh(ctx); err != nil { // an object that is gone must not be made again
			return err
		}
	}
	if l.Claim != nil {
		if err := l.Claim(ctx, req); err != nil {
			return err
		}
	}
	if l.Operator != "" && req.Object.GetAnnotations()[operatorAnnotation] == "" {
		annotations := maps.Clone(req.Object.GetAnnotations())
		if annotations == nil {
			annotations = make(map[string]string, 1)
		}
		annotations[operatorAnnotation] = l.Operator
		req.Object.SetAnnotations(annotations)
	}
	return nil
}

// mayModify reports whether CreateOrUpdate is called.
func (l *lifecycle[T]) mayModify(decision policy.Decision) bool {
	if l.ChecksVerbs {
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
	return errors.Join(err, invalidPolicy(decision))
}

// act makes what the object stands for, or observes it, as its policy allows.
func (l *lifecycle[T]) act(ctx context.Context, req *step.Request[T], decision policy.Decision) error {
	if l.mayModify(decision) {
		return l.CreateOrUpdate(ctx, req)
	}
	if l.UpdateStatus != nil {
		if err := l.UpdateStatus(ctx, req); err != nil {
			return err
		}
	}
	if l.Refresh > 0 {
		return ctrlkit.RequeueWithin(spread(l.Refresh, req.Object))
	}
	return nil
}

// cleanUp removes what the object stands for, or leaves it, as its policy says.
func (l *lifecycle[T]) cleanUp(ctx context.Context, req *step.Request[T]) error {
	decision, err := l.final(ctx, req)
	if err != nil {
		return err
	}
	step.Put(req, policyKey, decision)
	l.mark(req, decision)
	switch decision.OnDeletion() {
	case policy.DeletionDelete:
		if l.Claimed != nil && !l.Claimed(req.Object) {
			return nil // nothing was ever made
		}
		return l.Delete(ctx, req)
	case policy.DeletionDetach:
		req.Logger.Info("What the object stands for is left, as its policy says", "policy", decision.Message())
		if l.Release != nil && decision.Refusal(policy.VerbUpdate) == "" {
			if err := l.Release(ctx, req); err != nil { // a policy may keep it because the system does not answer
				req.Event(corev1.EventTypeWarning, reasonNotReleased, "Delete", "What the object stood for is left, and still marked as its own: %v", err)
			}
		}
		return nil
	default:
		return invalidPolicy(decision)
	}
}

// final resolves the policy for a deletion. The API server is asked for the namespace, because a
// stale cache could show one without the annotation that keeps what can't be made again.
func (l *lifecycle[T]) final(ctx context.Context, req *step.Request[T]) (policy.Decision, error) {
	return ResolvePolicy(ctx, liveReader(req), req.Object, l.Policy)
}

// mark sets the condition that shows the policy.
func (l *lifecycle[T]) mark(req *step.Request[T], decision policy.Decision) {
	switch {
	case req.Conditions == nil:
	case l.mayModify(decision):
		req.Conditions.MarkHealthy(conditionManaged, decision.Reason(), decision.Message())
	default:
		req.Conditions.MarkUnhealthy(conditionManaged, condition.SeverityInfo, decision.Reason(), decision.Message())
	}
}

// liveReader returns the reader of a request that asks the API server, if it has one.
func liveReader[T client.Object](req *step.Request[T]) client.Reader {
	if req.APIReader != nil {
		return req.APIReader
	}
	return req.Client
}
