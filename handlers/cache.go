// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// NewCache makes the cache of a manager for a [Registry]:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{NewCache: handlers.NewCache})
//
// It is a cache like any other, made by [cache.New] with the same options. Besides, it knows who
// uses the informer of a kind, so that one of which no handler is left is stopped and its objects
// are released, unless a controller or [cache.Cache.GetInformer] has requested it, too.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	return Wrap(cache.New)(config, options)
}

// Wrap returns a function that makes the cache of a manager for a [Registry] of one that inner
// makes, for programs that have their own.
func Wrap(inner cache.NewCacheFunc) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c := &countingCache{inner: inner, config: config, scheme: options.Scheme, users: make(map[kindKey]*users), limited: make(map[kindKey][]cache.Cache), reports: make(map[string]func(string, error))}
		next := options.DefaultWatchErrorHandler
		if next == nil {
			next = toolscache.DefaultWatchErrorHandler
		}
		options.DefaultWatchErrorHandler = func(ctx context.Context, r *toolscache.Reflector, err error) {
			c.failed(r.TypeDescription(), err)
			next(ctx, r, err)
		}
		c.options = options
		var err error
		c.Cache, err = inner(config, options)
		return c, err
	}
}

// A kindKey names a kind as a Go type has it: the informers of typed objects, of unstructured ones
// and of metadata are different ones.
type kindKey struct {
	gvk  schema.GroupVersionKind
	form form
}

type form string

const (
	formTyped        form = ""
	formUnstructured form = "unstructured"
	formMetadata     form = "metadata"
)

// String returns the name of the kind, for people.
func (k kindKey) String() string {
	text := k.gvk.Kind
	if k.gvk.Group != "" {
		text += "." + k.gvk.Group
	}
	if k.form != formTyped {
		text += fmt.Sprintf(" (%s)", k.form)
	}
	return text
}

func keyOf(obj client.Object, scheme *runtime.Scheme) (kindKey, error) {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return kindKey{}, err
	}
	switch obj.(type) {
	case *unstructured.Unstructured:
		return kindKey{gvk, formUnstructured}, nil
	case *metav1.PartialObjectMetadata:
		return kindKey{gvk, formMetadata}, nil
	}
	return kindKey{gvk, formTyped}, nil
}

// A countingCache knows who uses its informers.
type countingCache struct {
	cache.Cache
	inner   cache.NewCacheFunc
	config  *rest.Config
	options cache.Options
	scheme  *runtime.Scheme

	mu      sync.Mutex // for all below
	users   map[kindKey]*users
	limited map[kindKey][]cache.Cache                      // of the kinds that a registry limits; the last one answers
	reports map[string]func(description string, err error) // of each registry, by its name
}

// users are those of one informer.
type users struct {
	feeds  int
	others bool
}

// GetInformer implements [cache.Informers]. Who calls it may add event handlers: the informer is
// kept.
func (c *countingCache) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	key, err := keyOf(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	c.noteOther(key)
	return c.cacheOf(key).GetInformer(ctx, obj, options...)
}

// GetInformerForKind implements [cache.Informers], like GetInformer.
func (c *countingCache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind, options ...cache.InformerGetOption) (cache.Informer, error) {
	key := kindKey{gvk, formTyped}
	c.noteOther(key)
	return c.cacheOf(key).GetInformerForKind(ctx, gvk, options...)
}

// RemoveInformer implements [cache.Informers]. An informer with handlers is not removed: it is
// removed with the last of them.
func (c *countingCache) RemoveInformer(ctx context.Context, obj client.Object) error {
	key, err := keyOf(obj, c.scheme)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.users[key]; u != nil {
		u.others = false
		if u.feeds > 0 {
			return nil
		}
	}
	delete(c.users, key)
	return c.Cache.RemoveInformer(ctx, obj)
}

func (c *countingCache) noteOther(key kindKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of(key).others = true
}

func (c *countingCache) of(key kindKey) *users {
	u := c.users[key]
	if u == nil {
		u = &users{}
		c.users[key] = u
	}
	return u
}

// acquire returns the informer of a kind for a feed, which releases it. It does not wait until it
// is synced.
func (c *countingCache) acquire(ctx context.Context, key kindKey, obj client.Object) (cache.Informer, error) {
	c.mu.Lock()
	c.of(key).feeds++ // first: then a feed that ends meanwhile does not remove it
	c.mu.Unlock()
	informer, err := c.cacheOf(key).GetInformer(ctx, obj, cache.BlockUntilSynced(false))
	if err != nil {
		c.mu.Lock()
		c.of(key).feeds--
		c.mu.Unlock()
		return nil, err
	}
	return informer, nil
}

// release gives an informer back, which is removed with its last user.
func (c *countingCache) release(ctx context.Context, key kindKey, obj client.Object) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(key)
	if u.feeds--; u.feeds > 0 || u.others {
		return nil
	}
	delete(c.users, key)
	if len(c.limited[key]) > 0 {
		return nil // the feed that has limited it stops it
	}
	return c.Cache.RemoveInformer(ctx, obj)
}

// limit makes a cache for the objects of one kind that options select. It answers all reads of the
// kind until stop is called, which waits until it has ended.
func (c *countingCache) limit(ctx context.Context, key kindKey, obj client.Object, options *KindOptions) (stop func(), err error) {
	limits := cache.ByObject{Label: options.Labels, Field: options.Fields}
	for _, namespace := range options.Namespaces {
		if limits.Namespaces == nil {
			limits.Namespaces = make(map[string]cache.Config)
		}
		limits.Namespaces[namespace] = cache.Config{}
	}
	all := c.options
	all.ByObject = map[client.Object]cache.ByObject{obj: limits}
	own, err := c.inner(c.config, all)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := own.Start(ctx); err != nil {
			c.failed(key.String(), err)
		}
	}()
	c.mu.Lock()
	c.limited[key] = append(c.limited[key], own)
	c.mu.Unlock()
	return func() {
		c.mu.Lock() // the kind may have handlers again, and another cache for them
		c.limited[key] = slices.DeleteFunc(c.limited[key], func(o cache.Cache) bool { return o == own })
		if len(c.limited[key]) == 0 {
			delete(c.limited, key)
		}
		c.mu.Unlock()
		cancel()
		<-done
	}, nil
}

// cacheOf returns the cache that has the objects of a kind.
func (c *countingCache) cacheOf(key kindKey) cache.Cache {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.limited[key]; len(all) > 0 {
		return all[len(all)-1]
	}
	return c.Cache
}

// Get implements [client.Reader].
func (c *countingCache) Get(ctx context.Context, name client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	key, err := keyOf(obj, c.scheme)
	if err != nil {
		return err
	}
	return c.cacheOf(key).Get(ctx, name, obj, options...)
}

// List implements [client.Reader].
func (c *countingCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	key := kindKey{gvk, formTyped}
	switch list.(type) {
	case *unstructured.UnstructuredList:
		key.form = formUnstructured
	case *metav1.PartialObjectMetadataList:
		key.form = formMetadata
	}
	return c.cacheOf(key).List(ctx, list, options...)
}

// IndexField implements [client.FieldIndexer].
func (c *countingCache) IndexField(ctx context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	key, err := keyOf(obj, c.scheme)
	if err != nil {
		return err
	}
	return c.cacheOf(key).IndexField(ctx, obj, field, extract)
}

// failed passes the error of a watch on.
func (c *countingCache) failed(description string, err error) {
	c.mu.Lock()
	all := slices.Collect(maps.Values(c.reports))
	c.mu.Unlock()
	for _, report := range all {
		report(description, err)
	}
}

// report has a registry receive the errors of watches. Two of one manager have two names.
func (c *countingCache) report(registry string, to func(description string, err error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reports[registry] != nil {
		return fmt.Errorf("the manager already has a registry %q: controllers and finalizers would have the same names", registry)
	}
	c.reports[registry] = to
	return nil
}
