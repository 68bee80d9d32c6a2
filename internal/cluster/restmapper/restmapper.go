// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package restmapper remembers the REST mappings of kinds, because controller-runtime asks for them
// at each event of an owned object and at each read from a cache of namespaces.
package restmapper

import (
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// New returns the REST mapper that a manager has by default, with a memory.
func New(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
	next, err := apiutil.NewDynamicRESTMapper(config, httpClient)
	if err != nil {
		return nil, err
	}
	return Remembering(next), nil
}

// Remembering returns a mapper that asks next once for each mapping of a kind in one version. It
// asks again after an error. It is safe for concurrent use if next is.
func Remembering(next meta.RESTMapper) meta.RESTMapper { return &remembering{RESTMapper: next} }

type remembering struct {
	meta.RESTMapper
	known sync.Map // meta.RESTMapping by schema.GroupVersionKind
}

// RESTMapping implements [meta.RESTMapper]. The mapping belongs to the caller.
func (r *remembering) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) != 1 || versions[0] == "" {
		// The preferred version may change. Without the copy, each call would allocate its
		// versions.
		return r.RESTMapper.RESTMapping(kind, slices.Clone(versions)...)
	}
	key := kind.WithVersion(versions[0])
	if known, ok := r.known.Load(key); ok {
		mapping := known.(meta.RESTMapping) //nolint:errcheck // stored below
		return &mapping, nil
	}
	mapping, err := r.RESTMapper.RESTMapping(kind, versions[0])
	if err != nil {
		return nil, err
	}
	if mapping.GroupVersionKind == key {
		r.known.Store(key, *mapping)
	}
	return mapping, nil
}
