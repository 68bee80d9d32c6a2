// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Use is what an operator does with objects of a kind, as a declaration:
//
//	permission.Use{Object: &batchv1.Job{}, Verbs: []string{"create", "delete"}}
type Use struct {
	Object      client.Object // of the kind: typed, or with its kind
	Subresource string        // such as "status"
	Namespace   string        // of the objects; empty for all namespaces, and for cluster-scoped kinds
	Verbs       []string      // such as "create"; not empty
	By          string        // who does it; in an engine, a use without it is of the step that declares it
}

// Needs returns what uses need. The client knows the resources of the kinds.
func Needs(c client.Client, uses ...Use) ([]Need, error) {
	var needs []Need
	for _, u := range uses {
		gvk, err := c.GroupVersionKindFor(u.Object)
		if err != nil {
			return nil, fmt.Errorf("kind of %T: %w: register it with the scheme of the client", u.Object, err)
		}
		if len(u.Verbs) == 0 {
			return nil, fmt.Errorf("a use of %s has no verbs: say what is done with the objects, such as \"create\"", gvk.Kind)
		}
		mapping, err := c.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, fmt.Errorf("resource of %s: %w", gvk.Kind, err)
		}
		resource := mapping.Resource.Resource
		if u.Subresource != "" {
			resource += "/" + u.Subresource
		}
		for _, verb := range u.Verbs {
			n := Need{Group: mapping.Resource.Group, Resource: resource, Verb: verb}
			if u.Namespace != "" {
				n.Targets = []Target{{Namespace: u.Namespace}}
			}
			if u.By != "" {
				n.By = []string{u.By}
			}
			needs = append(needs, n)
		}
	}
	return Merge(needs), nil
}
