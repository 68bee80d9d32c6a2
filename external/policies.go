// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// PolicyOf returns what the policy of the object of a request allows. Without a step of [New] or
// [Simple] it allows nothing.
func PolicyOf[T client.Object](req *step.Request[T]) policy.Decision {
	decision, _ := step.Lookup(req, policyKey)
	return decision
}

var policyKey = step.NewKey[policy.Decision]("the policy of the object")

// ResolvePolicy returns what an operator may do for an object, for a step that is not made by
// [New] or [Simple]:
//
//		Watches: func() []step.Watch { return external.PolicyWatches(s.defaults) },
//
//		func (s bucketStep) Do(ctx context.Context, req *request) error {
//			decision, err := external.ResolvePolicy(ctx, req.Client, req.Object, s.defaults)
//			...
//
//	  - Reader is Request.Client: then a change of the namespace is an input of the step, also with
//	    step.Options.SkipUnchanged.
//	  - The cache may be stale. Before an act that can't be undone, and that the policy of a new
//	    namespace could forbid, resolve once more through Request.APIReader.
//	  - An error means that nothing is known: the namespace could not be read, or the cache does not
//	    have it yet. Nothing may be done; return the error, so that the reconcile is tried again.
//	  - What a person has written wrongly is not an error here, but an invalid decision.
func ResolvePolicy(ctx context.Context, reader client.Reader, object client.Object, defaults policy.Defaults) (policy.Decision, error) {
	if !defaults.NeedsNamespace(object) {
		return policy.Resolve(object, nil, defaults), nil
	}
	namespace := &corev1.Namespace{}
	if err := reader.Get(ctx, client.ObjectKey{Name: object.GetNamespace()}, namespace); err != nil {
		return policy.Resolve(object, nil, defaults), fmt.Errorf("reading namespace %s for its policies: %w", object.GetNamespace(), err)
	}
	return policy.Resolve(object, namespace, defaults), nil
}

// PolicyWatches returns the watch of namespaces, for Watches of a step. All objects of a namespace
// are reconciled when an annotation of package policy is added to it, changed or removed, and when
// the namespace appears. Other changes of a namespace reconcile nothing.
//
// The scheme of the manager has the core types, and the role of the operator get, list and watch
// for namespaces, in a ClusterRole. An operator that is not given that says so, with
// [policy.Defaults.IgnoreNamespaces]: then nothing is read and nothing is watched.
//
// Namespaces are cached whole, not only their metadata, which is nearly all of them: so they are
// in the cache once for all that reads them, an idle object costs no read, and an operator that
// stops leaves no goroutine, which the watch of metadata does.
func PolicyWatches(defaults policy.Defaults) []step.Watch {
	if defaults.IgnoreNamespaces {
		return nil
	}
	return []step.Watch{{Object: &corev1.Namespace{}, NamedBy: policyNamespaceOf, Changed: policyChanged}}
}

// policyNamespaceOf returns the key of the namespace of an object, without a name if it has none.
func policyNamespaceOf(obj client.Object) []client.ObjectKey {
	return []client.ObjectKey{{Name: obj.GetNamespace()}}
}

// policyChanged reports whether the policies of a namespace differ, or it has a new request to reconcile
// its objects now. A namespace that appears counts also without one: objects whose policy could not
// be resolved wait for it.
func policyChanged(before, now client.Object) bool {
	if before == nil || now == nil {
		return true
	}
	was, is := policy.Annotations(before), policy.Annotations(now)
	if is[policy.ReconcileNowAnnotation] == "" { // a request that is removed is no request
		delete(was, policy.ReconcileNowAnnotation)
		delete(is, policy.ReconcileNowAnnotation)
	}
	return !maps.Equal(was, is)
}

// invalidPolicy returns the failure of an object whose policy a person has to correct.
func invalidPolicy(decision policy.Decision) error {
	err := decision.Err()
	if err == nil || errors.Is(err, policy.ErrNamespaceUnknown) {
		return err
	}
	return failure.Terminal(err, decision.Reason(), decision.Remedy())
}
