// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/refusal"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
)

// onlyCreate is the resource version with which an object is created. No object has it: the API
// server ignores it if there is no such object, and answers with a conflict if there is one.
// Without it, an object that another client has created meanwhile would be taken over.
const onlyCreate = "1"

// unseenRetry is how often an object of another owner is read again that the cache does not have, and
// may never have, because it selects: no event reports that it is gone.
const unseenRetry = 5 * time.Minute

// unseenAfter is how old an object of ours is that the cache should have.
const unseenAfter = time.Minute

// A child is one object of a set that is made as it should be.
type child struct {
	*keeper
	*item
	unseen  bool // the cache does not have the object that exists
	ours    bool // the object that exists is ours
	created bool // it did not exist before
	again   bool // the cache did not have it as it is
	// version, if it is not empty, is that of the object which is to be applied to: the owner reference
	// that it has may have been removed since.
	version string
}

// ensure returns the object as it is in the cluster.
func (c *child) ensure(ctx context.Context) (client.Object, error) {
	current := c.kind.empty(c.gvk)
	err := c.client.Get(ctx, c.key(), current, client.UnsafeDisableDeepCopy)
	c.unseen = apierrors.IsNotFound(err)
	if c.unseen {
		return c.create(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.Ref, err)
	}
	return c.update(ctx, current)
}

// create creates the object. The cache may not have one that exists.
func (c *child) create(ctx context.Context) (client.Object, error) {
	answer, err := c.createOnly(ctx)
	if err == nil || !apierrors.IsConflict(err) {
		return answer, err
	}
	answer, err = c.updateNewest(ctx)
	if err == nil && time.Since(answer.GetCreationTimestamp().Time) >= unseenAfter {
		return nil, failure.Terminal(fmt.Errorf("%s exists, and the cache of the operator does not have it: its changes are not seen, and it would not be pruned", c.Ref), reasonNotSelected, fmt.Sprintf(
			"have cache.Options select it: its labels are %s; or have the %s give it the labels and the namespace that cache.Options.ByObject selects", labels.Set(answer.GetLabels()), c.ownerKind.Kind), failure.WithRetryAfter(unseenRetry))
	}
	return answer, err
}

// createOnly creates the object. The error is a conflict if it exists, and a wait if the note of it has
// the UID of one that is gone.
func (c *child) createOnly(ctx context.Context) (client.Object, error) {
	if c.remembered[c.Ref] != "" {
		c.reopen = true
		return nil, &waitError{what: "the note of " + c.Ref.String()}
	}
	answer, err := c.apply(ctx, c.content, "resourceVersion", onlyCreate)
	c.created = err == nil
	c.ours = c.created
	return answer, err
}

// updateNewest is update for an object that the cache does not have as it is.
func (c *child) updateNewest(ctx context.Context) (client.Object, error) {
	if c.live == nil {
		return nil, &waitError{what: fmt.Sprintf("the cache to have %s, which exists", c.Ref), unseen: true}
	}
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(c.gvk)
	if err := c.live.Get(ctx, c.key(), current); err != nil {
		return nil, fmt.Errorf("reading %s, which exists: %w", c.Ref, err)
	}
	answer, err := c.update(ctx, current)
	if wait := (*waitError)(nil); errors.As(err, &wait) {
		wait.unseen = true
	}
	return answer, err
}

// update makes an object that exists as it should be.
func (c *child) update(ctx context.Context, current client.Object) (client.Object, error) {
	policy, err := c.policy.with(current, c.manager)
	if err != nil {
		return nil, failure.Terminal(fmt.Errorf("%s: %w", c.Ref, err), reasonUnknownPolicy, "correct the annotation")
	}
	verdict, err := c.mayWrite(ctx, current, &policy)
	if err != nil {
		if c.watched.block(c.kind, c.key(), client.ObjectKeyFromObject(c.owner)) {
			return c.ensure(ctx)
		}
		return nil, err
	}
	if c.ours = true; policy.frozen || policy.has(CreateOnly) && verdict == verdictOurs || c.isUnchanged(current, &policy) {
		return current, nil
	}
	if !c.tracked {
		if c.version = current.GetResourceVersion(); !isOwnedBy(current, c.owner) && c.live != nil {
			if _, err := newestOwner(ctx, c.keeper); err != nil {
				return nil, err
			}
		}
	}
	if policy.has(CreateOnly) && hasApplied(current, c.manager) {
		return c.claimAsIs(ctx, current)
	}
	if !policy.has(CreateOnly) {
		if err := c.migrateFields(ctx, current); err != nil {
			return nil, err
		}
	}
	answer, err := c.change(ctx, current, &policy)
	switch {
	case isStale(err) && !c.again && c.live != nil:
		c.again = true
		return c.updateNewest(ctx)
	case apierrors.IsInvalid(err):
		return nil, c.refused(ctx, current, &policy, err)
	}
	return answer, err
}

// claimAsIs makes an object ours that we have applied before, outside this set, and that is to stay
// as it is: to apply no more than whose it is would remove all else that we have applied.
func (c *child) claimAsIs(ctx context.Context, current client.Object) (client.Object, error) {
	metadata, _ := c.claimed()["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	delete(metadata, "name")
	delete(metadata, "namespace")
	if isOwnedBy(current, c.owner) {
		delete(metadata, "ownerReferences")
	} else if ours, _ := metadata["ownerReferences"].([]any); ours != nil {
		live, err := unstructuredOf(current, c.gvk)
		if err != nil {
			return nil, err
		}
		others, _, _ := unstructured.NestedSlice(live.Object, "metadata", "ownerReferences")
		metadata["ownerReferences"] = append(others, ours...)
	}
	metadata["resourceVersion"] = current.GetResourceVersion()
	patch, err := track.ContentPatch(types.MergePatchType, map[string]any{"metadata": metadata})
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", c.Ref, err)
	}
	answer := c.kind.empty(c.gvk)
	answer.SetNamespace(c.Namespace)
	answer.SetName(c.Name)
	if err := c.client.Patch(ctx, answer, patch, client.FieldOwner(c.manager)); err != nil {
		return nil, fmt.Errorf("changing whose %s is: %w", c.Ref, err)
	}
	return answer, nil
}

// isStale reports whether a write was refused because the object has changed since it was read, and not for a
// field of another manager.
func isStale(err error) bool { return apierrors.IsConflict(err) && len(conflictsOf(err)) == 0 }

// apply applies content, with the hash of what the set wants, to an object whose guard, a field of
// its metadata, has a value. It sends a patch instead of calling Apply of the client: the answer
// to that is JSON, and the answer to a patch of a typed object is in the encoding of its kind,
// which is decoded several times as fast. The API server refuses what a schema does not have in any
// case. To validate the fields it would parse the patch once more, for keys that are there twice.
func (c *child) apply(ctx context.Context, content map[string]any, guard, value string, options ...client.PatchOption) (client.Object, error) {
	wanted := maps.Clone(content)
	metadata := maps.Clone(content["metadata"].(map[string]any)) //nolint:errcheck // an item has it
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = make(map[string]any, 1)
	}
	annotations[HashAnnotation] = c.hash
	if c.version != "" {
		metadata["resourceVersion"] = c.version
	}
	metadata["annotations"], metadata[guard], wanted["metadata"] = annotations, value, metadata
	patch, err := track.ContentPatch(types.ApplyYAMLPatchType, wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", c.Ref, err)
	}
	answer := c.kind.empty(c.gvk)
	answer.SetNamespace(c.Namespace)
	answer.SetName(c.Name)
	options = append(options, client.FieldOwner(c.manager), client.FieldValidation(metav1.FieldValidationIgnore))
	if err := c.client.Patch(ctx, answer, patch, options...); err != nil {
		err = fmt.Errorf("applying %s: %w", c.Ref, readable(err))
		if twice := refusal.Duplicates(err); twice != nil {
			return nil, failure.Terminal(fmt.Errorf("applying %s: %w", c.Ref, twice), reasonWrongSet, refusal.RemedyDuplicates)
		}
		if strings.Contains(err.Error(), "failed to create typed patch object") { // answered with 500
			err = failure.Terminal(err, reasonWrongSet, "correct the field that the message names: its definition does not have it, or has another type")
		}
		return nil, err
	}
	return answer, nil
}

// isUnchanged reports whether to apply the object would change nothing: the hash of what was
// applied is that of what is wanted, and no other client has taken a field from us.
func (c *child) isUnchanged(current client.Object, policy *policy) bool {
	if current.GetAnnotations()[HashAnnotation] != c.hash {
		return false
	}
	return policy.has(Theirs) || witness.Covers(current.GetManagedFields(), c.manager, c.content)
}

// mayWrite returns an error if an object belongs to another owner, and a wait if it is being
// deleted, or was left to the garbage collector by a predecessor of the owner.
func (c *child) mayWrite(ctx context.Context, current client.Object, policy *policy) (verdict, error) {
	e, err := evidenceOf(ctx, c.keeper, c.Ref, current, c.item, policy)
	if err != nil {
		return verdictRefuse, err
	}
	controller := metav1.GetControllerOf(current)
	if !current.GetDeletionTimestamp().IsZero() || e.controller == holderOther && c.isPredecessor(controller) {
		return verdictRefuse, &waitError{what: c.Ref.String() + " to be gone"}
	}
	if v := e.wanted(); v != verdictRefuse {
		return v, nil
	}
	by, remedy := "has no owner", "delete it, or allow it to be taken over with the annotation "+PolicyAnnotation+": adopt"
	switch {
	case e.controller == holderOther:
		by = "is controlled by " + controller.Kind + " " + controller.Name
		remedy = "delete it if it is not needed, or " + otherName(c.keeper)
	case e.label == holderUs:
		by = "has the label of this set, but was not written by it: it is a copy, or was restored without its managed fields,"
	case e.label == holderOther:
		by = "belongs to " + c.setOf(current, controller)
		remedy = "remove it from that set, or " + otherName(c.keeper)
		if c.loose && e.controller == holderUs {
			remedy += "; if there is no such set any more, remove the label " + SetLabel
		}
		if controller == nil {
			remedy += "; if it is a copy, or was restored under another name or in another namespace, remove the label " + SetLabel + ", and add the annotation " + PolicyAnnotation + ": adopt"
		}
	}
	marks := []failure.Option{
		failure.WithClass(failure.ClassTerminal), failure.WithSeverity(condition.SeverityError),
		failure.WithReason(ReasonOwnedByAnother), failure.WithRemedy(remedy),
	}
	if c.unseen {
		marks = append(marks, failure.WithRetryAfter(unseenRetry))
	}
	return verdictRefuse, failure.Mark(fmt.Errorf("%s exists, %s and is not ours", c.Ref, by), marks...)
}

func otherName(k *keeper) string {
	if k.anyKind {
		return "use another name in this set"
	}
	return "have the " + k.ownerKind.Kind + " use another name"
}

// setOf describes the other set that an object belongs to: by its owner, and by the field manager that has
// written its label.
func (c *child) setOf(current client.Object, controller *metav1.OwnerReference) string {
	set := "another set"
	for _, entry := range current.GetManagedFields() {
		if entry.Operation != metav1.ManagedFieldsOperationApply || entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+SetLabel+`"`)) {
			continue
		}
		if set = "the set of operator " + strconv.Quote(entry.Manager); entry.Manager == c.manager {
			set = "another set of this operator"
		}
	}
	if owner := current.GetAnnotations()[OwnerAnnotation]; owner != "" {
		return set + ", of " + owner
	} else if controller != nil {
		return set + ", of the same " + controller.Kind
	}
	return set
}

// isPredecessor reports whether a controller is an object of the name of the owner that was there
// before it.
func (c *child) isPredecessor(controller *metav1.OwnerReference) bool {
	gv, err := schema.ParseGroupVersion(controller.APIVersion)
	return err == nil && gv.Group == c.ownerKind.Group && controller.Kind == c.ownerKind.Kind && controller.Name == c.owner.GetName()
}

// migrateFields gives us the fields that former field managers of the object have set, the first
// time that we apply it: those that Migrate names, and those that have written our label, because
// they have restored or copied an object of ours. Fields that they share with us would stay for
// ever.
func (c *child) migrateFields(ctx context.Context, current client.Object) error {
	if hasApplied(current, c.manager) || len(c.migrate) == 0 && !slices.Contains(c.labels, current.GetLabels()[SetLabel]) {
		return nil
	}
	if c.live != nil { // the cache may have dropped the entries of others
		newest := &unstructured.Unstructured{}
		newest.SetGroupVersionKind(c.gvk)
		if err := c.live.Get(ctx, c.key(), newest); err != nil {
			return fmt.Errorf("reading %s, to migrate it: %w", c.Ref, err)
		}
		current = newest
	}
	managers := sets.New(c.migrate...)
	for _, entry := range current.GetManagedFields() {
		if entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:`+SetLabel+`"`)) {
			managers.Insert(entry.Manager)
		}
	}
	current = asUpdates(current, managers)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(current, managers, c.manager)
	if err != nil || len(patch) == 0 {
		return err
	}
	return c.patchManagers(ctx, patch)
}

// asUpdates returns an object in which what managers have applied is what others have updated, for
// csaupgrade, which does not take over the fields of managers that apply. It adds these others to
// the managers.
func asUpdates(obj client.Object, managers sets.Set[string]) client.Object {
	obj = obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	entries := obj.GetManagedFields()
	for i, entry := range entries {
		if entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && managers.Has(entry.Manager) {
			entries[i].Operation = metav1.ManagedFieldsOperationUpdate
			entries[i].Manager += " applies" // or its entry would hide one of the same manager that updates
			managers.Insert(entries[i].Manager)
		}
	}
	obj.SetManagedFields(entries)
	return obj
}

// hasApplied reports whether a field manager has applied an object.
func hasApplied(obj client.Object, manager string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == ""
	})
}

// delete deletes an object as it was read, if it has not changed since.
func (k *keeper) delete(ctx context.Context, ref Ref, obj client.Object, propagation metav1.DeletionPropagation) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	err := k.client.Delete(ctx, obj.DeepCopyObject().(client.Object), //nolint:errcheck // a copy has the type
		client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(propagation))
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("deleting %s: %w", ref, err)
	}
	return nil
}
