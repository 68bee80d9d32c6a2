// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package witness

import (
	"hash/maphash"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// mostFamilies is how many different labels, and how many different owner references, are shared.
// There is one of each for an object with children.
const mostFamilies = 8192

// A family is what the children of an object have in common: their labels and owner references. A
// map takes some 400 bytes for a single label. A string that is in use stays shared when it is
// forgotten. It is not safe for concurrent use.
type family struct {
	seed   maphash.Seed
	labels map[uint64]map[string]string // by their hash
	owners map[uint64][]metav1.OwnerReference
}

func newFamily() family {
	return family{seed: maphash.MakeSeed(), labels: map[uint64]map[string]string{}, owners: map[uint64][]metav1.OwnerReference{}}
}

// labelsLike returns labels that are equal, those of another object if there is one. Text returns
// the text that objects share. Neither the argument nor the result is changed afterwards.
func (f *family) labelsLike(labels map[string]string, text func(string) string) map[string]string {
	var hash uint64
	for key, value := range labels {
		hash += maphash.Comparable(f.seed, [2]string{key, value}) // in any order
	}
	if shared, ok := f.labels[hash]; ok && maps.Equal(shared, labels) {
		return shared
	}
	if len(f.labels) >= mostFamilies {
		clear(f.labels)
	}
	shared := make(map[string]string, len(labels))
	for key, value := range labels {
		shared[text(key)] = value
	}
	f.labels[hash] = shared
	return shared
}

// ownersLike is labelsLike for owner references.
func (f *family) ownersLike(owners []metav1.OwnerReference, text func(string) string) []metav1.OwnerReference {
	hash := uint64(len(owners))
	for i := range owners {
		hash = 31*hash + maphash.String(f.seed, string(owners[i].UID))
	}
	if shared, ok := f.owners[hash]; ok && slices.EqualFunc(shared, owners, sameReference) {
		return shared
	}
	if len(f.owners) >= mostFamilies {
		clear(f.owners)
	}
	shared := slices.Clone(owners)
	for i := range shared {
		o := &shared[i]
		o.APIVersion, o.Kind = text(o.APIVersion), text(o.Kind)
	}
	f.owners[hash] = shared
	return shared
}

func sameReference(a, b metav1.OwnerReference) bool {
	return a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name && a.UID == b.UID &&
		ptr.Equal(a.Controller, b.Controller) && ptr.Equal(a.BlockOwnerDeletion, b.BlockOwnerDeletion)
}
