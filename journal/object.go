// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// An Object identifies an object of the cluster. The version is not part of the identity. Without a
// name it stands for its kind: package handlers records so that a kind is missing.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// ObjectOf returns the Object with this kind, namespace and name.
func ObjectOf(kind schema.GroupKind, key types.NamespacedName) Object {
	return Object{Group: kind.Group, Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Key returns namespace and name.
func (o Object) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
}

// String returns "Kind namespace/name", without the group.
func (o Object) String() string {
	switch {
	case o.Name == "":
		return o.Kind
	case o.Namespace == "":
		return o.Kind + " " + o.Name
	default:
		return o.Kind + " " + o.Namespace + "/" + o.Name
	}
}
