// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/crd"
)

// kind is one resource in one version.
type kind struct {
	gvr          schema.GroupVersionResource
	gvk          schema.GroupVersionKind
	listKind     string
	storage      schema.GroupResource // the table of its objects, which all versions of a resource share
	namespaced   bool
	singular     string
	shortNames   []string
	categories   []string
	verbs        []string
	subresources []string // of the real server that are not simulated
	status       bool
	review       bool // it can be created only, and is not stored
	scale        *crd.Scale
	definition   *crd.Version // nil for a built-in kind

	mu       sync.Mutex // guards managers
	managers map[string]*managedfields.FieldManager
}

func (k *kind) hasSubresource(name string) bool { return slices.Contains(k.subresources, name) }

// catalog holds the kinds of a server: the built-in ones, which all servers share, and those of its
// CustomResourceDefinitions.
type catalog struct {
	builtin map[schema.GroupVersionResource]*kind
	own     map[schema.GroupVersionResource]*kind
	answers *sync.Map // to discovery, as []byte by path and Accept; a new one when own has changed
}

func (c *catalog) kind(gvr schema.GroupVersionResource) (*kind, bool) {
	if k, ok := c.own[gvr]; ok {
		return k, true
	}
	k, ok := c.builtin[gvr]
	return k, ok
}

func (c *catalog) byKind(gvk schema.GroupVersionKind) (*kind, bool) {
	for _, kinds := range []map[schema.GroupVersionResource]*kind{c.own, builtinByGroup()[gvk.GroupVersion()]} {
		for _, k := range kinds {
			if k.gvk == gvk {
				return k, true
			}
		}
	}
	return nil, false
}

// all returns all kinds, ordered by group, version and resource.
func (c *catalog) all() []*kind {
	var list []*kind
	for _, kinds := range []map[schema.GroupVersionResource]*kind{c.own, c.builtin} {
		for _, k := range kinds {
			list = append(list, k)
		}
	}
	slices.SortFunc(list, compareKinds)
	return list
}

func builtinCatalog() *catalog {
	return &catalog{builtin: builtinKinds(), own: map[schema.GroupVersionResource]*kind{}, answers: &builtinAnswers}
}

// builtinAnswers are the answers to discovery of servers that have built-in kinds only.
var builtinAnswers sync.Map

// eventsStorage is the resource in which Events are stored: core/v1 and events.k8s.io/v1 show the
// same objects.
var eventsStorage = schema.GroupResource{Resource: "events"}

var builtinKinds = sync.OnceValue(func() map[schema.GroupVersionResource]*kind {
	kinds := map[schema.GroupVersionResource]*kind{}
	for _, r := range builtin.Resources() {
		k := &kind{
			gvr: r.GVR, gvk: r.GVK(), listKind: r.Kind + "List", storage: r.GVR.GroupResource(), namespaced: r.Namespaced, singular: r.Singular,
			shortNames: r.ShortNames, categories: r.Categories, verbs: r.Verbs, subresources: r.Subresources, status: r.Status,
		}
		if r.Scale {
			k.scale = &crd.Scale{Replicas: []string{"spec", "replicas"}, StatusReplicas: []string{"status", "replicas"}, Selector: []string{"spec", "selector"}}
		}
		if r.GVR.Resource == "events" {
			k.storage = eventsStorage
		}
		k.review = builtin.IsReview(r)
		kinds[r.GVR] = k
	}
	return kinds
})

var builtinByGroup = sync.OnceValue(func() map[schema.GroupVersion]map[schema.GroupVersionResource]*kind {
	groups := map[schema.GroupVersion]map[schema.GroupVersionResource]*kind{}
	for gvr, k := range builtinKinds() {
		if groups[gvr.GroupVersion()] == nil {
			groups[gvr.GroupVersion()] = map[schema.GroupVersionResource]*kind{}
		}
		groups[gvr.GroupVersion()][gvr] = k
	}
	return groups
})
