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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply/internal/witness"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/refusal"
	"github.com/ctrlkit/ctrlkit/internal/track"
)

// onlyCreate is the resource version with which an object is created. No object has it: the API
// server ignores it if there is no such object, and answers with a conflict if there is one.
// Without it, an object that another client has created meanwhile would be taken over.
const onlyCreate = "1"

// unseenRetry is how often an object of another owner is read again that the cache does not have, and
// may never have, because it selects: no event reports that it is gone.
const unseenRetry = 5 * time.Minute

// A child is one object of a set that is made as it should be.
type child struct {
	*keeper
	*item
	unseen bool // the cache does not have the object that exists
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
	answer, err := c.apply(ctx, c.content, "resourceVersion", onlyCreate)
	if err == nil || !apierrors.IsConflict(err) {
		return answer, err
	}
	if c.live == nil {
		return nil, &waitError{what: fmt.Sprintf("the cache to have %s, which exists", c.Ref), unseen: true}
	}
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(c.gvk)
	if err := c.live.Get(ctx, c.key(), current); err != nil {
		return nil, fmt.Errorf("reading %s, which exists: %w", c.Ref, err)
	}
	answer, err = c.update(ctx, current)
	if wait := (*waitError)(nil); errors.As(err, &wait) {
		wait.unseen = true
	}
	return answer, err
}

// update makes an object that exists as it should be.
func (c *child) update(ctx context.Context, current client.Object) (client.Object, error) {
	policy, err := c.policy.with(current, c.manager)
	if err != nil {
		return nil, failure.Mark(fmt.Errorf("%s: %w", c.Ref, err), failure.WithClass(failure.ClassTerminal),
			failure.WithReason(ReasonUnknownPolicy), failure.WithRemedy("correct the annotation"))
	}
	if err := c.mayWrite(current, &policy); err != nil {
		if c.watched.block(c.kind, c.key(), client.ObjectKeyFromObject(c.owner)) {
			return c.ensure(ctx)
		}
		return nil, err
	}
	if policy.frozen || policy.has(CreateOnly) && c.isOurs(current) || c.isUnchanged(current, &policy) {
		return current, nil
	}
	if !policy.has(CreateOnly) {
		if err := c.migrateFields(ctx, current); err != nil {
			return nil, err
		}
	}
	answer, err := c.change(ctx, current, &policy)
	if apierrors.IsInvalid(err) {
		return nil, c.refused(ctx, current, &policy, err)
	}
	return answer, err
}

// apply applies content, with the hash of what the set wants, to an object whose guard, a field of
// its metadata, has a value. It sends a patch instead of calling Apply of the client: the answer
// to that is JSON, and the answer to a patch of a typed object is in the encoding of its kind,
// which is decoded several times as fast.
func (c *child) apply(ctx context.Context, content map[string]any, guard, value string, options ...client.PatchOption) (client.Object, error) {
	wanted := maps.Clone(content)
	metadata := maps.Clone(content["metadata"].(map[string]any)) //nolint:errcheck // an item has it
	annotations, _ := metadata["annotations"].(map[string]any)
	annotations = maps.Clone(annotations)
	if annotations == nil {
		annotations = make(map[string]any, 1)
	}
	annotations[HashAnnotation] = c.hash
	metadata["annotations"], metadata[guard], wanted["metadata"] = annotations, value, metadata
	patch, err := track.ContentPatch(types.ApplyYAMLPatchType, wanted)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", c.Ref, err)
	}
	answer := c.kind.empty(c.gvk)
	answer.SetNamespace(c.Namespace)
	answer.SetName(c.Name)
	options = append(options, client.FieldOwner(c.manager))
	if err := c.client.Patch(ctx, answer, patch, options...); err != nil {
		err = fmt.Errorf("applying %s: %w", c.Ref, readable(err))
		if twice := refusal.Duplicates(err); twice != nil {
			return nil, terminal(fmt.Errorf("applying %s: %w", c.Ref, twice), ReasonWrongSet, refusal.RemedyDuplicates)
		}
		if strings.Contains(err.Error(), "failed to create typed patch object") { // answered with 500
			err = terminal(err, ReasonWrongSet, "correct the field that the message names: its definition does not have it, or has another type")
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
func (c *child) mayWrite(current client.Object, policy *policy) error {
	controller := metav1.GetControllerOf(current)
	foreign := controller != nil && controller.UID != c.owner.GetUID()
	if !current.GetDeletionTimestamp().IsZero() || foreign && c.isPredecessor(controller) {
		return &waitError{what: c.Ref.String() + " to be gone"}
	}
	set := current.GetLabels()[SetLabel]
	switch {
	case !foreign && (slices.Contains(c.labels, set) || controller != nil && set == ""):
		return nil
	case !foreign && set == "" && policy.has(Adopt):
		return nil
	}
	by, remedy := "has no owner", "delete it, or allow it to be taken over with the annotation "+PolicyAnnotation+": adopt"
	if foreign {
		by = "is controlled by " + controller.Kind + " " + controller.Name
		remedy = "delete it if it is not needed, or " + otherName(c.keeper)
	} else if set != "" {
		by = "belongs to " + c.setOf(current, controller)
		remedy = "remove it from that set, or " + otherName(c.keeper)
	}
	marks := []failure.Option{
		failure.WithClass(failure.ClassTerminal), failure.WithSeverity(condition.SeverityError),
		failure.WithReason(ReasonOwnedByAnother), failure.WithRemedy(remedy),
	}
	if c.unseen {
		marks = append(marks, failure.WithRetryAfter(unseenRetry))
	}
	return failure.Mark(fmt.Errorf("%s exists, %s and is not ours", c.Ref, by), marks...)
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
// they have restored or copied an object of ours. What they share with us would stay for ever.
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
