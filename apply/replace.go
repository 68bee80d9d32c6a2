// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/refusal"
)

// change applies what the set wants to an object that exists. If that is refused, and the object has
// another member of a union than the one that is wanted, the other member is removed. That takes two
// requests, so that no null stays in the managed fields.
func (c *child) change(ctx context.Context, current client.Object, policy *policy, options ...client.PatchOption) (client.Object, error) {
	dry := len(options) > 0
	if !policy.has(Theirs) && !policy.has(StopOnConflict) {
		options = append(options, client.ForceOwnership)
	}
	content := c.contentFor(policy)
	answer, err := c.changeTo(ctx, current, policy, content, options)
	if !apierrors.IsInvalid(err) {
		return answer, err
	}
	live, convErr := unstructuredOf(current, c.gvk)
	if convErr != nil {
		return nil, err
	}
	settled := refusal.Settle(c.client.Scheme(), c.gvk, content, live.Object)
	if settled == nil {
		return nil, err
	}
	answer, settledErr := c.changeTo(ctx, current, policy, settled, options)
	switch {
	case settledErr != nil && policy.has(Theirs):
		return nil, err // the other member is theirs
	case settledErr != nil || dry:
		return answer, settledErr
	}
	return c.changeTo(ctx, current, policy, content, options)
}

// changeTo applies content to an object that exists, as its policy has it for fields of others.
func (c *child) changeTo(ctx context.Context, current client.Object, policy *policy, content map[string]any, options []client.PatchOption) (client.Object, error) {
	uid := string(current.GetUID()) // or it would be created again if it is gone
	answer, err := c.apply(ctx, content, "uid", uid, options...)
	switch {
	case apierrors.IsConflict(err) && policy.has(Theirs):
		return c.applyRest(ctx, err, uid, options...)
	case apierrors.IsConflict(err) && policy.has(StopOnConflict):
		return nil, stopped(c.Ref, err)
	}
	return answer, err
}

// refused handles a change that the API server refuses: if that is because of immutable fields, and
// the policy allows it, the object is deleted, to be created again.
func (c *child) refused(ctx context.Context, current client.Object, policy *policy, err error) error {
	propagation, err := c.replacement(ctx, current, policy, err)
	if err != nil {
		return err
	}
	if err := c.delete(ctx, c.Ref, current, propagation); err != nil {
		return err
	}
	return &waitError{what: c.Ref.String() + " to be gone, to be created again"}
}

// replacement returns how an object is deleted that can't be changed otherwise, and the failure if it
// must not be.
func (c *child) replacement(ctx context.Context, current client.Object, policy *policy, refused error) (metav1.DeletionPropagation, error) {
	live, err := unstructuredOf(current, c.gvk)
	if err != nil || !refusal.Immutable(refused, c.groupKind(), c.Name) {
		return "", refused
	}
	r := refusal.ReplacementOf(c.groupKind(), c.key(), c.content, live.Object)
	if r.Loss == "" && policy.has(Keep) {
		r.Loss = "what its policy keeps"
	}
	propagation := metav1.DeletePropagationBackground
	switch {
	case r.Adopts && policy.has(ReplaceOrphaning):
		propagation = metav1.DeletePropagationOrphan
	case policy.has(ReplaceLosingData) || policy.has(Replace) && r.Loss == "":
	default:
		return "", c.irreplaceable(&r, refused)
	}
	if policy.has(Once) {
		propagation = metav1.DeletePropagationForeground // its Pods must not run beside those of its successor
	}
	trial := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.content)}
	if created := c.client.Create(ctx, trial, client.DryRunAll, client.FieldOwner(c.manager)); !apierrors.IsAlreadyExists(created) {
		return "", refused // it would be refused as a new object, too
	}
	return propagation, nil
}

// irreplaceable is the failure of an object that must not be deleted by its policy.
func (c *child) irreplaceable(r *refusal.Replacement, refused error) error {
	word := Replace
	switch {
	case r.Adopts:
		word = ReplaceOrphaning
	case r.Loss != "":
		word = ReplaceLosingData
	}
	return terminal(refused, ReasonImmutableField, fmt.Sprintf("%s; annotate it with %s: %s to allow that for good", r.Remedy(), PolicyAnnotation, word))
}
