// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin holds what the API server in memory knows about the built-in kinds of Kubernetes:
// which kinds exist, and how the real server defaults, prepares, validates and selects their
// objects.
//
// The resources are those that a real server reported (resources.json). The rest transcribes the
// strategies and defaults of k8s.io/kubernetes, which this module must not import.
package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:embed resources.json
var resourcesJSON []byte

// served is one line of resources.json: a resource, or a subresource, of a group and version.
type served struct {
	GroupVersion string
	metav1.APIResource
}

// A Resource is a built-in resource that the server serves.
type Resource struct {
	GVR          schema.GroupVersionResource
	Kind         string
	Singular     string
	Namespaced   bool
	Verbs        []string
	ShortNames   []string
	Categories   []string
	Status       bool     // has the subresource status
	Scale        bool     // has the subresource scale
	Subresources []string // others, which are not served
}

// GVK returns the kind with group and version.
func (r Resource) GVK() schema.GroupVersionKind { return r.GVR.GroupVersion().WithKind(r.Kind) }

// notServed are the versions and kinds that are omitted, with the reason.
var notServed = map[string]string{
	"autoscaling/v1": "it would have to be converted to autoscaling/v2",
}

var all = sync.OnceValue(func() []served {
	var list []served
	if err := json.Unmarshal(resourcesJSON, &list); err != nil {
		panic(fmt.Sprintf("resources.json: %v", err))
	}
	return list
})

// Resources returns the served resources, ordered by group, version and name. The slice is shared:
// do not change it.
func Resources() []Resource { return resources() }

var resources = sync.OnceValue(func() []Resource {
	var list []Resource
	index := map[string]int{}
	for _, s := range all() {
		if strings.Contains(s.Name, "/") || notServed[s.GroupVersion] != "" || !slices.Contains(s.Verbs, "list") && !isReview(s.Name) {
			continue
		}
		gv, err := schema.ParseGroupVersion(s.GroupVersion)
		if err != nil || !types().Recognizes(gv.WithKind(s.Kind)) {
			continue
		}
		index[s.GroupVersion+" "+s.Name] = len(list)
		list = append(list, Resource{
			GVR: gv.WithResource(s.Name), Kind: s.Kind, Singular: s.SingularName, Namespaced: s.Namespaced, Verbs: s.Verbs,
			ShortNames: s.ShortNames, Categories: s.Categories,
		})
	}
	for _, s := range all() {
		name, sub, ok := strings.Cut(s.Name, "/")
		i, known := index[s.GroupVersion+" "+name]
		switch {
		case !ok || !known:
		case sub == "status":
			list[i].Status = true
		case sub == "scale":
			list[i].Scale = true
		default:
			list[i].Subresources = append(list[i].Subresources, sub)
		}
	}
	return list
})
