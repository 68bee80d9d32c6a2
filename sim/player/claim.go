// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A claim says which objects of the kind T a controller has or takes for its own: the rules are those
// of k8s.io/kubernetes/pkg/controller/controller_ref_manager.go.
type claim[T client.Object] struct {
	selector *metav1.LabelSelector
	fits     func(T) bool // what an object must be beyond its labels; nil: nothing
	ignores  func(T) bool // what is neither adopted nor released; nil: nothing
}

// make adopts the objects that match and that no controller has, and releases those that the owner
// controls although they do not match any more. An object that is being deleted is not adopted. The
// owner must not be being deleted; a stage has no cache, so that there is no need to look it up again.
func (c claim[T]) make(s *Stage, owner client.Object) error {
	selector, err := metav1.LabelSelectorAsSelector(c.selector)
	if err != nil {
		return fmt.Errorf("the selector of %s: %w", describe(owner), err)
	}
	if c.selector == nil || selector.Empty() {
		return nil
	}
	var errs []error
	for _, obj := range s.world.Objects(prototype[T](), owner.GetNamespace()) {
		controller := metav1.GetControllerOf(obj)
		matches := selector.Matches(labels.Set(obj.GetLabels())) && (c.fits == nil || c.fits(obj.(T)))
		switch {
		case c.ignores != nil && c.ignores(obj.(T)):
		case controller == nil && matches && obj.GetDeletionTimestamp() == nil:
			errs = append(errs, s.adopt(owner, obj.DeepCopyObject().(T)))
		case controller != nil && controller.UID == owner.GetUID() && !matches:
			errs = append(errs, s.release(owner, obj.DeepCopyObject().(T)))
		}
	}
	return errors.Join(errs...)
}

// adopt makes owner the controller of an object.
func (s *Stage) adopt(owner, obj client.Object) error {
	kind, err := s.world.Kind(owner)
	if err != nil {
		return err
	}
	obj.SetOwnerReferences(append(withoutOwner(obj, owner), *metav1.NewControllerRef(owner, kind)))
	return s.Update(obj)
}

// release takes the reference to its owner from an object.
func (s *Stage) release(owner, obj client.Object) error {
	obj.SetOwnerReferences(withoutOwner(obj, owner))
	return s.Update(obj)
}

// withoutOwner returns the owner references of an object without those of one owner.
func withoutOwner(obj, owner client.Object) []metav1.OwnerReference {
	return slices.DeleteFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
}

// adopters returns the objects of the kind T that may adopt an object without a controller: those
// whose selectors match. It is for [Player.Watching], as no owner reference leads to them.
func adopters[T client.Object](selectorOf func(T) *metav1.LabelSelector) func(*Stage, client.Object) []client.ObjectKey {
	return func(s *Stage, obj client.Object) []client.ObjectKey {
		if metav1.GetControllerOf(obj) != nil {
			return nil
		}
		var keys []client.ObjectKey
		for _, owner := range s.world.Objects(prototype[T](), obj.GetNamespace()) {
			selector, err := metav1.LabelSelectorAsSelector(selectorOf(owner.(T)))
			if err == nil && !selector.Empty() && selector.Matches(labels.Set(obj.GetLabels())) {
				keys = append(keys, client.ObjectKeyFromObject(owner))
			}
		}
		return keys
	}
}

// adoptingPods returns a player that is also called for Pods that its objects may adopt.
func adoptingPods[T client.Object](p Player, selectorOf func(T) *metav1.LabelSelector) Player {
	return p.Watching(&corev1.Pod{}, adopters(selectorOf))
}
