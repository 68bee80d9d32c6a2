// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// A Cluster is [Objects] of an operator that has no journal: what the API server alone says.
type Cluster struct {
	client client.Client
	cache  cache.Cache
	kinds  []schema.GroupKind // those that were asked for; nil for all that have a definition

	mu     sync.Mutex
	found  []schema.GroupKind
	read   time.Time
	reason error // why definitions can't be read
}

// NewCluster returns the objects of some kinds, or of all that have a CustomResourceDefinition if kinds
// is nil, in a namespace, or in all of them if it is empty. It reads until the context is done.
func NewCluster(ctx context.Context, config *rest.Config, namespace string, kinds ...schema.GroupKind) (*Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	options := cache.Options{Scheme: scheme, Mapper: c.RESTMapper()}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	informers, err := cache.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("making a cache of %s: %w", config.Host, err)
	}
	go func() { _ = informers.Start(ctx) }() // an error of an informer is in its own log
	return &Cluster{client: c, cache: informers, kinds: kinds}, nil
}

// OfCluster returns the page of an operator that has no journal, or could not be asked: then why says
// so. It reads until the context is done.
func OfCluster(ctx context.Context, config *rest.Config, namespace, why string, kinds ...schema.GroupKind) (*Server, error) {
	cluster, err := NewCluster(ctx, config, namespace, kinds...)
	if err != nil {
		return nil, err
	}
	options := Options{Name: config.Host, Objects: cluster, Activity: NewActivity(), Done: ctx.Done(), NoJournal: "Steps, causes and writes are not known: this is what the API server says."}
	if why != "" {
		options.NoJournal += " " + explanation.OneLine(why)
	}
	return New(options), nil
}

// Kinds implements [Objects]. Definitions that are installed later are found within half a minute.
func (c *Cluster) Kinds() []schema.GroupKind {
	if c.kinds != nil {
		return c.kinds
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.read.IsZero() && time.Since(c.read) < 30*time.Second {
		return c.found
	}
	c.read = time.Now()
	var definitions apiextensionsv1.CustomResourceDefinitionList
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if c.reason = c.client.List(ctx, &definitions); c.reason != nil {
		return c.found
	}
	c.found = nil
	for i := range definitions.Items {
		spec := &definitions.Items[i].Spec
		c.found = append(c.found, schema.GroupKind{Group: spec.Group, Kind: spec.Names.Kind})
	}
	slices.SortFunc(c.found, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
	return c.found
}

// Problem returns why there are no kinds, nil if there are.
func (c *Cluster) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// Follow implements [Objects].
func (c *Cluster) Follow(kind schema.GroupKind, handler func(schema.GroupVersionKind) toolscache.ResourceEventHandler) (
	stop func(), synced func() bool, err error,
) {
	mapping, err := c.client.RESTMapper().RESTMapping(kind)
	if err != nil {
		return nil, nil, fmt.Errorf("finding the version of %s: %w", kind, err)
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	informer, err := c.cache.GetInformer(context.Background(), obj, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, nil, err
	}
	registration, err := informer.AddEventHandler(handler(mapping.GroupVersionKind))
	if err != nil {
		return nil, nil, err
	}
	return func() { _ = informer.RemoveEventHandler(registration) }, registration.HasSynced, nil
}

// Get implements [Objects]. It reads from the API server.
func (c *Cluster) Get(ctx context.Context, o journal.Object) (*unstructured.Unstructured, string, error) {
	mapping, err := c.client.RESTMapper().RESTMapping(schema.GroupKind{Group: o.Group, Kind: o.Kind})
	if err != nil {
		return nil, "", err
	}
	resource := mapping.Resource.GroupResource().String()
	if o.Kind == "Secret" && o.Group == "" { // its values stay where they are
		partial := &metav1.PartialObjectMetadata{}
		partial.SetGroupVersionKind(mapping.GroupVersionKind)
		if err := c.client.Get(ctx, o.Key(), partial); err != nil {
			return nil, resource, client.IgnoreNotFound(err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(partial)
		return &unstructured.Unstructured{Object: content}, resource, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := c.client.Get(ctx, o.Key(), obj); apierrors.IsNotFound(err) {
		return nil, resource, nil
	} else if err != nil {
		return nil, resource, err
	}
	return obj, resource, nil
}
