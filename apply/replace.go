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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/refusal"
)

// change applies what the set wants to an object that exists. If that is refused, and the object has
// another member of a union than the one that is wanted, that member is removed.
func (c *child) change(ctx context.Context, current client.Object, policy *policy) (client.Object, error) {
	answer, err := c.changeTo(ctx, current, policy)
	if !apierrors.IsInvalid(err) {
		return answer, err
	}
	taken, takeErr := c.takeOthers(ctx, current, policy)
	if takeErr != nil {
		return nil, takeErr
	}
	if !taken {
		return nil, err
	}
	return c.changeTo(ctx, current, policy)
}

// changeTo applies what the set wants to an object that exists, as its policy has it for fields of
// others.
func (c *child) changeTo(ctx context.Context, current client.Object, policy *policy, options ...client.PatchOption) (client.Object, error) {
	uid := string(current.GetUID()) // or it would be created again if it is gone
	if !policy.has(Theirs) && !policy.has(StopOnConflict) {
		options = append(options, client.ForceOwnership)
	}
	answer, err := c.apply(ctx, c.contentFor(policy), "uid", uid, options...)
	switch {
	case isStale(err):
		return nil, err
	case apierrors.IsConflict(err) && policy.has(Theirs):
		return c.applyRest(ctx, err, uid, options...)
	case apierrors.IsConflict(err) && policy.has(StopOnConflict):
		return nil, stopped(c.Ref, err)
	}
	return answer, err
}

// others returns the members of unions that the object has instead of those that are wanted.
func (c *child) others(current client.Object, policy *policy) []fieldpath.Path {
	live, err := unstructuredOf(current, c.gvk)
	if err != nil {
		return nil
	}
	return refusal.Others(c.client.Scheme(), c.gvk, c.contentFor(policy), live.Object)
}

// takeOthers makes the other members of unions ours, so that they are removed when we apply without
// them. It reports whether it did: with Theirs and StopOnConflict, only what no other manager has.
func (c *child) takeOthers(ctx context.Context, current client.Object, policy *policy) (bool, error) {
	if c.live != nil && len(c.others(current, policy)) > 0 { // the cache may have dropped the entries of others
		newest := &unstructured.Unstructured{}
		newest.SetGroupVersionKind(c.gvk)
		if err := c.live.Get(ctx, c.key(), newest); err != nil {
			return false, fmt.Errorf("reading %s, to change it: %w", c.Ref, err)
		}
		current = newest
	}
	fields := c.others(current, policy)
	if len(fields) == 0 {
		return false, nil
	}
	patch, theirs, err := refusal.TakeOver(current, c.gvk.GroupVersion().String(), c.manager, fields)
	if err != nil || patch == nil || theirs && (policy.has(Theirs) || policy.has(StopOnConflict)) {
		return false, err
	}
	return true, c.patchManagers(ctx, patch)
}

// patchManagers changes which fields are whose, with a JSON patch.
func (c *child) patchManagers(ctx context.Context, patch []byte) error {
	target := &unstructured.Unstructured{}
	target.SetGroupVersionKind(c.gvk)
	target.SetNamespace(c.Namespace)
	target.SetName(c.Name)
	if err := c.client.Patch(ctx, target, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("taking fields of %s over: %w", c.Ref, err)
	}
	if c.version != "" {
		c.version = target.GetResourceVersion()
	}
	return nil
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
	return failure.Terminal(refused, reasonImmutableField, fmt.Sprintf("%s; annotate it with %s: %s to allow that for good", r.Remedy(), PolicyAnnotation, word))
}
