// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ctrlkit/ctrlkit/failure"
)

// The record of a set that is kept for an object has a finalizer: who deletes it, alone or with its
// namespace, would make the set forget its objects. A record that is being deleted is used all the same,
// until the set is deleted. If its namespace is being deleted and the object is not, the object takes
// the names over, so that the namespace can go.

// recordFinalizer is on the record of a set that is kept for an object.
const recordFinalizer = "apply.ctrlkit.dev/record"

// claimantAnnotation, on a record, has the UID of the object that the set is kept for.
const claimantAnnotation = "apply.ctrlkit.dev/for"

// A claimant is the object of a step that a set in another cluster is kept for. The zero value is
// none.
type claimant struct {
	text, uid string
	// noted are the names that were in a record which is gone, and note writes them.
	noted string
	note  func(ctx context.Context, value string) error
	event func(eventType, reason, action, format string, args ...any)
}

func recordRef(name client.ObjectKey) Ref { return refOf(configMapKind.GroupKind(), name) }

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// readRecord reads the record of a set, or creates it.
func readRecord(ctx context.Context, k *keeper, by claimant, create bool) (*corev1.ConfigMap, error) {
	ref := recordRef(k.identity.key)
	record := &corev1.ConfigMap{}
	err := k.live.Get(ctx, k.identity.key, record)
	if apierrors.IsNotFound(err) {
		record = newRecord(k, by)
		if !create {
			return record, nil
		}
		err = k.client.Create(ctx, record, client.FieldOwner(k.manager))
	}
	guarded := controllerutil.ContainsFinalizer(record, recordFinalizer)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the record of the set, %s: %w", ref, err)
	case !record.DeletionTimestamp.IsZero() && create && !guarded:
		return nil, fmt.Errorf("the record of the set, %s, is being deleted", ref)
	case record.Labels[SetLabel] != k.label:
		return nil, failure.Terminal(fmt.Errorf("%s exists, and is not the record of this set of %q", ref, k.manager), ReasonOwnedByAnother,
			"give the set another name, or delete the ConfigMap if it is not needed")
	case record.Annotations[claimantAnnotation] != by.uid:
		return nil, failure.Terminal(fmt.Errorf("%s is the record of a set that is kept for %s, UID %s", ref, record.Annotations[OwnerAnnotation], record.Annotations[claimantAnnotation]), ReasonOwnedByAnother, "give the set another name; or, if that object does not exist any more, in no cluster, set the annotation "+claimantAnnotation+" to "+by.remedy())
	case by.uid == "" || !create:
		return record, nil
	case !record.DeletionTimestamp.IsZero():
		return record, handOver(ctx, k, record, by)
	case !guarded: // of a former version
		if err := setFinalizer(ctx, k, record, true); err != nil {
			return nil, err
		}
	}
	if by.noted != "" {
		return record, by.note(ctx, "")
	}
	return record, nil
}

func newRecord(k *keeper, by claimant) *corev1.ConfigMap {
	ref := recordRef(k.identity.key)
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name, Labels: map[string]string{SetLabel: k.label}}}
	setAnnotation(record, claimantAnnotation, by.uid)
	setAnnotation(record, OwnerAnnotation, by.text)
	setAnnotation(record, k.notes(trackedPrefix, k.manager)[0].key, by.noted)
	if by.uid != "" {
		record.Finalizers = []string{recordFinalizer}
	}
	return record
}

// handOver lets a record go whose namespace is being deleted, after the object has noted what is in it.
func handOver(ctx context.Context, k *keeper, record *corev1.ConfigMap, by claimant) error {
	trial := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: record.Name}}
	err := k.client.Create(ctx, trial, client.DryRunAll)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // only the record is deleted: it stays until the set is deleted
	}
	if err := by.note(ctx, record.Annotations[k.notes(trackedPrefix, k.manager)[0].key]); err != nil {
		return err
	}
	if err := setFinalizer(ctx, k, record, false); err != nil {
		return err
	}
	return fmt.Errorf("the namespace of the record of the set, %s, is being deleted", recordRef(k.identity.key))
}

// setFinalizer adds the finalizer to a record as it was read, or removes it.
func setFinalizer(ctx context.Context, k *keeper, record *corev1.ConfigMap, on bool) error {
	before := record.DeepCopy()
	record.Finalizers = slices.DeleteFunc(record.Finalizers, func(name string) bool { return name == recordFinalizer })
	if on {
		record.Finalizers = append(record.Finalizers, recordFinalizer)
	}
	if len(before.Finalizers) == len(record.Finalizers) {
		return nil
	}
	err := k.client.Patch(ctx, record, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(k.manager))
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("writing the finalizer of the record %s: %w", recordRef(k.identity.key), err)
	}
	return nil
}

// deleteRecord deletes the record of a set whose objects are gone, or are to stay.
func deleteRecord(ctx context.Context, k *keeper, record *corev1.ConfigMap) error {
	if record.UID == "" {
		return nil
	}
	if err := setFinalizer(ctx, k, record, false); err != nil || !record.DeletionTimestamp.IsZero() {
		return err
	}
	return k.delete(ctx, recordRef(k.identity.key), record, metav1.DeletePropagationBackground)
}

func (c claimant) remedy() string {
	if c.uid == "" {
		return "an empty value"
	}
	return c.uid
}
