// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is the part of an object that is kept.
type Object struct {
	Kind      schema.GroupKind
	Namespace string // empty for cluster-scoped kinds
	Name      string
	UID       types.UID
	Owners    []types.UID // the controlling owner first
	OwnerName string      // what the annotation of a set says, for an object without owner references
	Created   time.Time
	Deleting  bool
	State     State
	Content   map[string]any // what JSONPath expressions are evaluated on
}

// newObject returns the part of u that is kept. columns are the printer columns of its definition.
func newObject(u *unstructured.Unstructured, columns []Column) *Object {
	obj := &Object{
		Kind:      u.GroupVersionKind().GroupKind(),
		Namespace: u.GetNamespace(),
		Name:      u.GetName(),
		UID:       u.GetUID(),
		Created:   u.GetCreationTimestamp().Time,
		Deleting:  u.GetDeletionTimestamp() != nil,
		Content:   u.Object,
	}
	for _, owner := range u.GetOwnerReferences() {
		if owner.Controller != nil && *owner.Controller {
			obj.Owners = append([]types.UID{owner.UID}, obj.Owners...)
		} else {
			obj.Owners = append(obj.Owners, owner.UID)
		}
	}
	if len(obj.Owners) == 0 {
		obj.OwnerName = u.GetAnnotations()[ownerAnnotation]
	}
	obj.State = stateOf(u, columns)
	return obj
}

// ownerAnnotation names the owner of an object that can have no owner reference, as in
// "Website.web.ctrlkit.dev default/shop". It is apply.OwnerAnnotation: the sets of any operator
// have it, whatever version of the library they were built with.
const ownerAnnotation = "apply.ctrlkit.dev/owner"

// ownerName returns how the annotation names the object.
func (o *Object) ownerName() string { return o.Kind.String() + " " + o.FullName() }

// FullName returns the name with its namespace, if it has one.
func (o *Object) FullName() string {
	if o.Namespace == "" {
		return o.Name
	}
	return o.Namespace + "/" + o.Name
}
