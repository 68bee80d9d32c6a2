// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// rings is the resource of ControllerRings.
var rings = schema.GroupVersionResource{Group: "sharding.timebertt.dev", Version: "v1alpha1", Resource: "controllerrings"}

// ringSpec is what a shard has to know of a ControllerRing.
type ringSpec struct {
	Spec struct {
		Resources []struct {
			metav1.GroupResource `json:",inline"`
			ControlledResources  []metav1.GroupResource `json:"controlledResources"`
		} `json:"resources"`
	} `json:"spec"`
}

// readRing finds out which kinds the ring assigns.
func (s *Shard) readRing(ctx context.Context, config *rest.Config, mapper apimeta.RESTMapper) error {
	c, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for the ControllerRing: %w", err)
	}
	got, err := c.Resource(rings).Get(ctx, s.ring, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: create the ControllerRing, and before that install the sharder if its kind is missing", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: grant the operator the verb get for %s", err, rings.GroupResource())
	case err != nil:
		return fmt.Errorf("reading the ControllerRing: %w", err)
	}
	var ring ringSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(got.Object, &ring); err != nil {
		return fmt.Errorf("reading the ControllerRing: %w", err)
	}
	s.main, s.controlled = map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	var mistakes []error
	add := func(to map[schema.GroupKind]bool, of metav1.GroupResource) {
		kind, err := kindOf(mapper, of)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("the ring lists %s: %w: install its definition, or remove it from the ControllerRing", of.String(), err))
			return
		}
		to[kind] = true
	}
	for _, r := range ring.Spec.Resources {
		add(s.main, r.GroupResource)
		for _, controlled := range r.ControlledResources {
			add(s.controlled, controlled)
		}
	}
	if len(ring.Spec.Resources) == 0 {
		mistakes = append(mistakes, errors.New("the ring lists no resources: add to spec.resources of the ControllerRing what the operator reconciles"))
	}
	return errors.Join(mistakes...)
}

func kindOf(mapper apimeta.RESTMapper, of metav1.GroupResource) (schema.GroupKind, error) {
	gvk, err := mapper.KindFor(schema.GroupVersionResource{Group: of.Group, Resource: of.Resource})
	return gvk.GroupKind(), err
}

// limit limits a cache to the objects of the shard, for all kinds of the ring in all their versions.
func (s *Shard) limit(options *cache.Options, scheme *runtime.Scheme, mapper apimeta.RESTMapper) error {
	for name, c := range options.DefaultNamespaces {
		if c.LabelSelector != nil {
			return fmt.Errorf("the cache has a label selector for the namespace %q, which would hide that of the shard: set it for each kind, in Cache.ByObject", name)
		}
	}
	all := map[client.Object]cache.ByObject{}
	given := map[schema.GroupVersionKind]bool{}
	for obj, limits := range options.ByObject {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return fmt.Errorf("the cache has options for %T: %w", obj, err)
		}
		given[gvk] = true
		all[obj] = s.limits(gvk.GroupKind(), limits, options.DefaultLabelSelector)
	}
	kinds := maps.Clone(s.main)
	maps.Copy(kinds, s.controlled)
	for kind := range kinds {
		versions := scheme.VersionsForGroupKind(kind)
		mappings, err := mapper.RESTMappings(kind)
		if err != nil {
			return fmt.Errorf("finding the versions of %s: %w", kind, err)
		}
		for _, m := range mappings {
			versions = append(versions, m.GroupVersionKind.GroupVersion())
		}
		for _, version := range versions {
			gvk := version.WithKind(kind.Kind)
			if given[gvk] {
				continue
			}
			given[gvk] = true
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(gvk)
			all[obj] = s.limits(kind, cache.ByObject{}, options.DefaultLabelSelector)
		}
	}
	options.ByObject = all
	return nil
}

// limits adds the selector of the shard to those of a kind.
func (s *Shard) limits(kind schema.GroupKind, limits cache.ByObject, byDefault labels.Selector) cache.ByObject {
	if limits.Label == nil {
		limits.Label = byDefault
	}
	limits.Label = s.Selects(kind, limits.Label)
	limits.Namespaces = maps.Clone(limits.Namespaces)
	for name, c := range limits.Namespaces {
		if c.LabelSelector != nil {
			c.LabelSelector = s.Selects(kind, c.LabelSelector)
			limits.Namespaces[name] = c
		}
	}
	return limits
}
