// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/live"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Cluster is the cluster that a plan is made for. It is only read: with lists, and with what
// discovery asks for. Its methods may be called concurrently.
type Cluster struct {
	objects   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface

	copied  map[schema.GroupResource][]*unstructured.Unstructured
	refused map[string]string // what could not be read, with the reason
	owned   map[types.UID][]dependent
	lists   int
	mu      sync.Mutex // guards the maps and the counts
}

type dependent struct {
	resource schema.GroupVersionResource
	uid      types.UID
}

// NewCluster returns the cluster of a configuration.
func NewCluster(config *rest.Config) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.WarningHandler = rest.NoWarnings{} // the operator gets them from the copy
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("reading the cluster: %w", err)
	}
	return &Cluster{
		objects: objects, metadata: meta, discovery: disco,
		copied: map[schema.GroupResource][]*unstructured.Unstructured{}, refused: map[string]string{},
	}, nil
}

// Read returns the objects of a resource. They are read once; further copies get copies of them.
func (c *Cluster) Read(ctx context.Context, resource schema.GroupVersionResource) ([]map[string]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	items, ok := c.copied[resource.GroupResource()]
	if !ok {
		err := live.Each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			c.lists++
			return c.objects.Resource(resource).List(ctx, o)
		}, func(item *unstructured.Unstructured) { items = append(items, item) })
		if err != nil {
			c.refuse(resource.GroupResource().String(), err)
			return nil, err
		}
		c.copied[resource.GroupResource()] = items
	}
	contents := make([]map[string]any, len(items))
	for i, item := range items {
		contents[i] = item.DeepCopy().Object
	}
	return contents, nil
}

// refuse records what could not be read. That the cluster does not serve a kind is an answer.
func (c *Cluster) refuse(what string, err error) {
	if !apierrors.IsNotFound(err) && !errors.Is(err, context.Canceled) {
		c.refused[what] = err.Error()
	}
}

// Dependents returns what is owned, of all kinds that the cluster serves, and what is in a
// namespace. The first call lists the metadata of all objects.
func (c *Cluster) Dependents(ctx context.Context, owners []types.UID) ([]schema.GroupVersionResource, []types.UID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owned == nil {
		c.owned = map[types.UID][]dependent{}
		if err := c.readOwners(ctx); err != nil {
			return nil, nil, err
		}
	}
	resources, uids := map[schema.GroupVersionResource]bool{}, []types.UID{}
	for _, owner := range owners {
		for _, d := range c.owned[owner] {
			resources[d.resource] = true
			uids = append(uids, d.uid)
		}
	}
	return sorted(resources), uids, nil
}

func (c *Cluster) readOwners(ctx context.Context) error {
	resources, silent, err := live.Resources(c.discovery, "list", "delete")
	if err != nil {
		return err
	}
	for group, err := range silent {
		c.refuse(group, err)
	}
	inside := map[string]types.UID{} // by namespace
	for _, namespace := range c.copied[namespaces.GroupResource()] {
		inside[namespace.GetName()] = namespace.GetUID()
	}
	for _, r := range resources {
		if err := c.readOwnersOf(ctx, r.GroupVersionResource, inside); err != nil {
			c.refuse(r.GroupResource().String(), err)
		}
	}
	return nil
}

func (c *Cluster) readOwnersOf(ctx context.Context, resource schema.GroupVersionResource, inside map[string]types.UID) error {
	return live.Each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		c.lists++
		return c.metadata.Resource(resource).List(ctx, o)
	}, func(obj *metav1.PartialObjectMetadata) {
		for _, o := range obj.OwnerReferences {
			c.owned[o.UID] = append(c.owned[o.UID], dependent{resource, obj.UID})
		}
		if namespace, known := inside[obj.Namespace]; known {
			c.owned[namespace] = append(c.owned[namespace], dependent{resource, obj.UID})
		}
	})
}

// Lists returns the number of list requests that the cluster was asked, and the number of objects
// that were copied.
func (c *Cluster) Lists() (requests, objects int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, items := range c.copied {
		objects += len(items)
	}
	return c.lists, objects
}

// Refused returns what could not be read, with the reasons.
func (c *Cluster) Refused() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.refused)
}

func sorted(set map[schema.GroupVersionResource]bool) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(set), func(a, b schema.GroupVersionResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
}
