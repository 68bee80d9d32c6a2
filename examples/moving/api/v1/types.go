// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1 has the kind of the example for docs/moving.md.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of Cache.
var GroupVersion = schema.GroupVersion{Group: "moving.demo.ctrlkit.dev", Version: "v1"}

// AddToScheme adds the kind to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Cache{}, &CacheList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}

// Cache is a number of cache servers.
type Cache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   CacheSpec   `json:"spec,omitempty"`
	Status CacheStatus `json:"status,omitempty"`
}

// CacheSpec is what is wanted.
type CacheSpec struct {
	Replicas int32 `json:"replicas,omitempty"`
}

// CacheStatus is what there is.
type CacheStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CacheList is a list of Caches.
type CacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Cache `json:"items"`
}

// DeepCopyObject copies the Cache.
func (c *Cache) DeepCopyObject() runtime.Object {
	out := *c
	out.ObjectMeta = *c.ObjectMeta.DeepCopy()
	out.Status.Conditions = append([]metav1.Condition(nil), c.Status.Conditions...)
	return &out
}

// DeepCopyObject copies the list.
func (l *CacheList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].DeepCopyObject().(*Cache)) //nolint:errcheck // a copy has the type
	}
	return &out
}
