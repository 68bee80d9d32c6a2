// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// object is a pointer to T that is a Kubernetes object.
type object[T any] interface {
	*T
	client.Object
}

// A SeveralError reports that several objects match a state that is a single object.
type SeveralError struct {
	// Found are the objects, in the order of their namespaces and names.
	Found []types.NamespacedName
}

// Error names every object that was found.
func (e *SeveralError) Error() string {
	names := make([]string, len(e.Found))
	for i, name := range e.Found {
		names[i] = nameOf(name)
	}
	return fmt.Sprintf("at most one object may match, but %d do: %s", len(names), strings.Join(names, ", "))
}

// A NotOwnedError reports that an object which the target must own has another owner, or none.
type NotOwnedError struct {
	Object, Target types.NamespacedName
	// Owners are the owners that the object has, as "Kind name".
	Owners []string
	// ByController is true if the target must be the controlling owner. Controller is then the
	// actual controlling owner, as "Kind name", or empty if there is none.
	ByController bool
	Controller   string
}

// Error names the object, the target, the owners of the object, and the remedy.
func (e *NotOwnedError) Error() string {
	object, target := nameOf(e.Object), nameOf(e.Target)
	owners := strings.Join(e.Owners, " and ")
	switch {
	case e.ByController && e.Controller != "":
		return fmt.Sprintf("%s is not controlled by %s but by %s: delete it, or make the target its controller", object, target, e.Controller)
	case e.ByController && owners != "":
		return fmt.Sprintf("%s is not controlled by %s: it has no controller, its owners are %s: delete it, or make the target its controller",
			object, target, owners)
	case e.ByController:
		return fmt.Sprintf("%s is not controlled by %s: it has no owner: delete it, or make the target its controller", object, target)
	case owners != "":
		return fmt.Sprintf("%s is not owned by %s but by %s: delete it, or make the target an owner", object, target, owners)
	default:
		return fmt.Sprintf("%s is not owned by %s: it has no owner: delete it, or make the target an owner", object, target)
	}
}

// isOwned reports whether obj has an owner reference with the UID of target. The target need not be
// the controlling owner: [metav1.IsControlledBy] reports that.
func isOwned(target, obj client.Object) bool {
	for _, owner := range obj.GetOwnerReferences() {
		if owner.UID == target.GetUID() {
			return true
		}
	}
	return false
}

// ControlledBy returns the items whose controlling owner reference has the UID of target, in the
// same order. It overwrites items, like [slices.DeleteFunc].
func ControlledBy[T any, P object[T]](target client.Object, items []T) []T {
	return keep(items, func(item P) bool { return metav1.IsControlledBy(item, target) })
}

// OwnedBy returns the items that target owns, as their controller or not, in the same order. It
// overwrites items, like [slices.DeleteFunc].
func OwnedBy[T any, P object[T]](target client.Object, items []T) []T {
	return keep(items, func(item P) bool { return isOwned(target, item) })
}

// CheckController returns obj if it is nil or controlled by target, and otherwise a
// [NotOwnedError].
func CheckController[T any, P object[T]](target client.Object, obj P) (P, error) {
	if obj == nil || metav1.IsControlledBy(obj, target) {
		return obj, nil
	}
	notOwned := newNotOwnedError(target, obj)
	notOwned.ByController = true
	if controller := metav1.GetControllerOfNoCopy(obj); controller != nil {
		notOwned.Controller = ownerName(*controller)
	}
	return nil, notOwned
}

// CheckOwner returns obj if it is nil or owned by target, and otherwise a [NotOwnedError].
func CheckOwner[T any, P object[T]](target client.Object, obj P) (P, error) {
	if obj == nil || isOwned(target, obj) {
		return obj, nil
	}
	return nil, newNotOwnedError(target, obj)
}

func newNotOwnedError(target, obj client.Object) *NotOwnedError {
	notOwned := &NotOwnedError{Object: client.ObjectKeyFromObject(obj), Target: client.ObjectKeyFromObject(target)}
	for _, owner := range obj.GetOwnerReferences() {
		notOwned.Owners = append(notOwned.Owners, ownerName(owner))
	}
	return notOwned
}

func ownerName(owner metav1.OwnerReference) string { return owner.Kind + " " + owner.Name }

// Named returns the items with this name, in the same order. It overwrites items, like
// [slices.DeleteFunc].
func Named[T any, P object[T]](name string, items []T) []T {
	return keep(items, func(item P) bool { return item.GetName() == name })
}

// keep is the opposite of slices.DeleteFunc. Unlike that, it does not copy an item to test it.
func keep[T any, P object[T]](items []T, wanted func(P) bool) []T {
	kept := items[:0]
	for i := range items {
		if wanted(&items[i]) {
			kept = append(kept, items[i])
		}
	}
	clear(items[len(kept):])
	return kept
}

// Only returns nil if there are no items, the item if there is one, and otherwise a [SeveralError].
func Only[T any, P object[T]](items []T) (P, error) {
	switch len(items) {
	case 0:
		return nil, nil
	case 1:
		return &items[0], nil
	}
	several := &SeveralError{}
	sorted := Sorted[T, P](items)
	for i := range sorted {
		several.Found = append(several.Found, client.ObjectKeyFromObject(P(&sorted[i])))
	}
	return nil, several
}

// Sorted returns the items sorted by namespace and name. It does not change items.
func Sorted[T any, P object[T]](items []T) []T {
	order := make([]P, len(items))
	for i := range items {
		order[i] = &items[i]
	}
	slices.SortFunc(order, func(a, b P) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	sorted := make([]T, len(items))
	for i, item := range order {
		sorted[i] = *item
	}
	return sorted
}

// Copy returns a deep copy of obj, nil for nil.
func Copy[T any, P object[T]](obj P) P {
	if obj == nil {
		return nil
	}
	copied := P(new(T))
	copyInto(obj, copied)
	return copied
}

// Copies returns deep copies of items, nil for nil.
func Copies[T any, P object[T]](items []T) []T {
	if items == nil {
		return nil
	}
	copies := make([]T, len(items))
	for i := range items {
		copyInto(P(&items[i]), P(&copies[i]))
	}
	return copies
}

// copyInto makes to a deep copy of from, by the method DeepCopyInto if the type has it as well as
// DeepCopyObject.
func copyInto[T any, P object[T]](from, to P) {
	if copier, ok := any(from).(interface{ DeepCopyInto(*T) }); ok {
		copier.DeepCopyInto(to)
		return
	}
	if copied, ok := from.DeepCopyObject().(P); ok {
		*to = *copied
	}
}

// nameOf returns NAMESPACE/NAME, or the name of a cluster-scoped object.
func nameOf(name types.NamespacedName) string {
	if name.Namespace == "" {
		return name.Name
	}
	return name.String()
}
