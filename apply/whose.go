// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Whose an object is, is decided here, for all kinds of children. The label of a set finds objects,
// and proves nothing: a copy has it, too. The proof is the UID in an owner reference, the note of
// the owner that names the object, and for what our server-side apply has written, its entry in the
// managed fields: no copy of kubectl has one.

// A holder is to whom an owner reference or a label points.
type holder int

const (
	holderNone holder = iota
	holderUs
	holderOther
)

// A noting is what the owner has noted of an object.
type noting int

const (
	notedNot   noting = iota
	notedOpen         // its name: the creation may be under way
	notedSame         // its name and its UID
	notedOther        // its name, and another UID
)

// An evidence is what an object that exists shows of whose it is.
type evidence struct {
	controller holder // of its owner reference
	label      holder // of SetLabel
	note       noting
	applied    bool // our server-side apply has written it
	owned      bool // if it is wanted: it is to get an owner reference that it lacks
	loose      bool // if it is wanted: it is to be in no set
	adopt      bool // if it is wanted: it may be taken over
	elsewhere  bool // it is neither in the namespace of its owner nor noted
}

// A verdict is what may be done with an object that has the name of a wanted one.
type verdict int

const (
	verdictRefuse verdict = iota // it is left as it is
	verdictTake                  // it becomes ours
	verdictOurs                  // it is ours
)

// wanted decides of an object that has the name of a wanted one. One that is restored has this name, our
// label, and our entry; a copy lacks one of them.
func (e evidence) wanted() verdict {
	switch {
	case e.controller == holderOther || e.label == holderOther:
		return verdictRefuse
	case e.controller == holderUs && e.label == holderNone && !e.loose:
		return verdictTake // by a former version, or by Ensure
	case e.controller == holderUs:
		return verdictOurs
	case e.label == holderUs && (e.applied || e.note == notedSame):
		if e.owned {
			return verdictTake // it lacks the owner reference
		}
		return verdictOurs
	case e.adopt:
		return verdictTake
	}
	return verdictRefuse
}

// deletable reports whether an object that is not wanted may be deleted, and if it has our label, why
// it may not.
func (e evidence) deletable() (ok bool, why string) {
	switch {
	case e.label != holderUs || e.controller == holderOther:
		return false, "" // another owner has it by now
	case e.elsewhere:
		return false, "is where the set has no objects: it is a copy"
	case !e.applied:
		return false, "was not written by this operator: it is a copy, or was restored"
	case e.controller == holderUs || e.note == notedSame || e.note == notedOpen:
		return true, ""
	case e.note == notedOther:
		return false, "has taken the place of the object that was noted: it was restored, or is a copy"
	}
	return false, "has no owner reference, and is not noted as one of the set: its owner reference was removed, it was restored, or it is a copy"
}

// evidenceOf returns what an object shows. Policy is that of an item with its name, nil if none is wanted.
func evidenceOf(ctx context.Context, k *keeper, ref Ref, obj client.Object, it *item, policy *policy) (evidence, error) {
	e := evidence{note: k.remembered.noteOf(ref, obj)}
	if controller := metav1.GetControllerOf(obj); controller != nil {
		e.controller = holderOther
		if controller.UID == k.owner.GetUID() {
			e.controller = holderUs
		}
	}
	if label := obj.GetLabels()[SetLabel]; slices.Contains(k.labels, label) {
		e.label = holderUs
	} else if label != "" {
		e.label = holderOther
	}
	if it != nil {
		e.owned, e.adopt, e.loose = !it.tracked && !policy.has(CreateOnly), policy.has(Adopt), k.loose
	}
	e.elsewhere = k.owner.GetNamespace() != "" && ref.Namespace != k.owner.GetNamespace() && e.note == notedNot
	if e.label != holderUs || it != nil && e.controller == holderUs {
		return e, nil // it does not matter who has written it
	}
	var err error
	e.applied, err = hasWritten(ctx, k, ref, obj)
	return e, err
}

func (t tracked) noteOf(ref Ref, obj client.Object) noting {
	uid, noted := t[ref]
	switch {
	case !noted:
		return notedNot
	case uid == "":
		return notedOpen
	case uid == obj.GetUID():
		return notedSame
	}
	return notedOther
}

// hasWritten reports whether an object has an entry of our server-side apply, under the present name of
// the engine or a former one. If the cache drops all entries, the API server is asked.
func hasWritten(ctx context.Context, k *keeper, ref Ref, obj client.Object) (bool, error) {
	if len(obj.GetManagedFields()) == 0 && k.live != nil {
		gvk, err := k.client.GroupVersionKindFor(obj)
		if err != nil {
			return false, err
		}
		newest := &unstructured.Unstructured{}
		newest.SetGroupVersionKind(gvk)
		switch err := k.live.Get(ctx, ref.key(), newest); {
		case apierrors.IsNotFound(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("reading who has written %s: %w", ref, err)
		case newest.GetUID() != obj.GetUID():
			return false, nil
		}
		obj = newest
	}
	if hasApplied(obj, k.manager) {
		return true, nil
	}
	return slices.ContainsFunc(k.settings.former, func(former string) bool {
		engine, _ := splitFormer(former)
		return hasApplied(obj, cmp.Or(engine, k.manager))
	}), nil
}

// isDeletable reports whether an object that is not wanted may be deleted. One that has our label and is
// left is said once.
func isDeletable(ctx context.Context, k *keeper, ref Ref, obj client.Object) (bool, error) {
	e, err := evidenceOf(ctx, k, ref, obj, nil, nil)
	if err != nil {
		return false, err
	}
	ok, why := e.deletable()
	if why != "" && k.event != nil && k.states.isNew(obj.GetUID()) {
		k.event(corev1.EventTypeWarning, reasonLeft, "Delete", "%s has the label of this set and is left: it %s. Delete it if it is not needed, or remove the label %s", ref, why, SetLabel)
	}
	return ok, nil
}

// newestOwner reads the owner from the API server, before an object gets the owner reference that it
// does not have. If the owner is being deleted, or is another object by now, it returns a wait: the
// cache does not have that yet. To put back the owner reference that the garbage collector has just
// removed, for a deletion that keeps the children, would delete the object.
func newestOwner(ctx context.Context, k *keeper) (client.Object, error) {
	key := client.ObjectKeyFromObject(k.owner)
	newest := k.owner.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	err := k.live.Get(ctx, key, newest)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading whether the owner exists: %w", err)
	}
	if err != nil || newest.GetUID() != k.owner.GetUID() || !newest.GetDeletionTimestamp().IsZero() {
		return nil, &waitError{what: "the cache to have the deletion of " + refOf(k.ownerKind.GroupKind(), key).String(), unseen: true}
	}
	return newest, nil
}
