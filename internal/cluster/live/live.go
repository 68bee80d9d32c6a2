// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package live reads a cluster as it is: which kinds it serves, and their objects page by page.
package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/pager"
)

// pageSize is how many objects are read with one request.
const pageSize = 500

// A Resource is a kind that a cluster serves, in the version that it prefers.
type Resource struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Resources returns the resources of a cluster that support some verbs, by group and name, and the groups of which it can't
// say the kinds, with the reasons, such as an aggregated API server that does not answer. It is an error
// if the cluster serves none.
func Resources(client discovery.DiscoveryInterface, verbs ...string) (list []Resource, silent map[string]error, err error) {
	lists, err := discovery.ServerPreferredResources(client)
	if err != nil && len(lists) == 0 {
		return nil, nil, fmt.Errorf("asking the cluster for its kinds: %w", err)
	}
	silent = map[string]error{}
	if partly := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &partly) {
		for group, err := range partly.Groups {
			silent[group.String()] = err
		}
	}
	for _, served := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: verbs}, lists) {
		group, err := schema.ParseGroupVersion(served.GroupVersion)
		if err != nil {
			continue // no object can be of it
		}
		for _, r := range served.APIResources {
			list = append(list, Resource{group.WithResource(r.Name), r.Namespaced})
		}
	}
	slices.SortFunc(list, func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return list, silent, nil
}

// Each calls a function for each object of a list, which is requested page by page.
func Each[T runtime.Object](ctx context.Context, page func(context.Context, metav1.ListOptions) (runtime.Object, error), do func(T)) error {
	return pager.New(page).EachListItem(ctx, metav1.ListOptions{Limit: pageSize}, func(item runtime.Object) error {
		obj, ok := item.(T)
		if !ok {
			return fmt.Errorf("a list has an object of type %T", item)
		}
		do(obj)
		return nil
	})
}
