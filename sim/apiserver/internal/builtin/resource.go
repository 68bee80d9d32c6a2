// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package builtin is what the API server in memory knows of the built-in kinds of Kubernetes: which there are, what their objects look like
// when they have been stored, and what may be done to them.
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

// A Resource is a built-in one that the server serves.
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

// notServed are versions and kinds that the real server has and that are left out, with the reason.
var notServed = map[string]string{
	"autoscaling/v1": "it is another version of autoscaling/v2, into which it would have to be converted",
}

// NotServed lists what the real server serves and this one does not, with the reason, ordered.
func NotServed() []string {
	var list []string
	for name, reason := range notServed {
		list = append(list, name+": "+reason)
	}
	for _, r := range all() {
		if !slices.Contains(r.Verbs, "list") && !strings.Contains(r.Name, "/") {
			list = append(list, r.GroupVersion+" "+r.Name+": it is an action, not an object")
		}
	}
	slices.Sort(list)
	return list
}

var all = sync.OnceValue(func() []served {
	var list []served
	if err := json.Unmarshal(resourcesJSON, &list); err != nil {
		panic(fmt.Sprintf("resources.json: %v", err))
	}
	return list
})

// Resources returns the resources that are served, ordered by group, version and name. The slice is shared: don't change it.
func Resources() []Resource { return resources() }

var resources = sync.OnceValue(func() []Resource {
	var list []Resource
	index := map[string]int{}
	for _, s := range all() {
		if strings.Contains(s.Name, "/") || notServed[s.GroupVersion] != "" || !slices.Contains(s.Verbs, "list") {
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
