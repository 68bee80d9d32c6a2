// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/writes"
)

// reads are the kinds that the reconciles of one process have read, and those whose changes it can
// notice. A read belongs to the reconcile in whose context it is made.
type reads struct {
	scheme   *apiruntime.Scheme
	resource func(gvk schema.GroupVersionKind) (resource schema.GroupVersionResource, namespaced bool, err error)

	mu sync.Mutex // for all below
	// watched are kinds with an event handler or a watch, and outside those that something else than
	// a reconcile reads: it may wake reconciles.
	watched, outside map[schema.GroupResource]bool
	running          map[types.UID]map[schema.GroupResource]read // by the id of the reconcile
	// last is what the last reconciles have read that asked for no time, by controller and object, and
	// reported what engines have said of themselves.
	last     map[[2]string]map[schema.GroupResource]read
	reported map[judge.Unwatched]bool
}

// A read is the first one of a kind in a reconcile.
type read struct {
	object string // "default/x"; a list has no name
	stack  []uintptr
	engine bool // an engine of package step has made it, which knows more
}

func newReads(scheme *apiruntime.Scheme, resource func(schema.GroupVersionKind) (schema.GroupVersionResource, bool, error)) *reads {
	return &reads{
		scheme: scheme, resource: resource,
		watched: map[schema.GroupResource]bool{}, outside: map[schema.GroupResource]bool{}, running: map[types.UID]map[schema.GroupResource]read{},
		last: map[[2]string]map[schema.GroupResource]read{}, reported: map[judge.Unwatched]bool{},
	}
}

// newClient makes the client of a manager, whose reads are noted.
func (r *reads) newClient(config *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(config, options)
	if err != nil {
		return nil, err
	}
	return readingClient{c, r}, nil
}

// A readingClient notes what is read through it, also from a cache.
type readingClient struct {
	client.Client
	reads *reads
}

// Get implements [client.Reader].
func (c readingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	c.note(ctx, obj, key, err)
	return err
}

// List implements [client.Reader].
func (c readingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	o := client.ListOptions{}
	c.note(ctx, list, client.ObjectKey{Namespace: o.ApplyOptions(opts).Namespace}, err)
	return err
}

// note notes a read. One that has failed ends in a retry.
func (c readingClient) note(ctx context.Context, obj apiruntime.Object, key client.ObjectKey, err error) {
	if err != nil && !apierrors.IsNotFound(err) {
		return
	}
	if resource, ok := c.reads.resourceOf(obj); ok {
		c.reads.note(controller.ReconcileIDFromContext(ctx), resource, key)
	}
}

// resourceOf returns the kind of an object or a list.
func (r *reads) resourceOf(obj apiruntime.Object) (schema.GroupResource, bool) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return schema.GroupResource{}, false
	}
	if meta.IsListType(obj) {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	resource, _, err := r.resource(gvk)
	return resource.GroupResource(), err == nil
}

// note notes a read of a kind, with the line of code that makes it. Id is that of the reconcile, empty
// outside.
func (r *reads) note(id types.UID, of schema.GroupResource, key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.running[id][of]; known || r.watched[of] {
		return
	}
	if id == "" {
		r.outside[of] = true
		return
	}
	if r.running[id] == nil {
		r.running[id] = map[schema.GroupResource]read{}
	}
	stack := writes.Stack(2)
	r.running[id][of] = read{object: strings.TrimPrefix(key.String(), "/"), stack: stack, engine: passes(stack, "github.com/ctrlkit/ctrlkit/step.(*Engine[")}
}

// passed notes a request that the server has answered, also of clients that a manager has not made.
func (r *reads) passed(ctx context.Context, request *apiserver.Request, code int) {
	of := request.Resource.GroupResource()
	id := controller.ReconcileIDFromContext(ctx)
	fromInformer := func() bool { return passes(writes.Stack(2), "k8s.io/client-go/tools/cache.(*Reflector)") }
	switch {
	case request.Verb == "watch":
		if !fromInformer() {
			r.watch(of)
		}
	case !cluster.IsRead(request) || code != http.StatusOK && code != http.StatusNotFound:
	case id != "" || !fromInformer():
		r.note(id, of, client.ObjectKey{Namespace: request.Namespace, Name: request.Name})
	}
}

// passes reports whether a function is in a stack whose name begins so.
func passes(stack []uintptr, function string) bool {
	frames := runtime.CallersFrames(stack)
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}

// handled notes that the changes of a kind are handled.
func (r *reads) handled(obj apiruntime.Object) {
	if resource, ok := r.resourceOf(obj); ok {
		r.watch(resource)
	}
}

func (r *reads) watch(of schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched[of] = true
}

// ended notes the end of a reconcile, and whether nothing but an event wakes the object then.
func (r *reads) ended(id types.UID, key [2]string, sleeps bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, key)
	if of := r.running[id]; sleeps && len(of) > 0 {
		r.last[key] = of
	}
	delete(r.running, id)
}

// said notes what an engine says of itself: that nothing watches a kind that a step has read.
func (r *reads) said(id types.UID, key [2]string, kind, step string) {
	gk := schema.ParseGroupKind(kind)
	guessed, _ := meta.UnsafeGuessKindToResource(gk.WithVersion(""))
	of := guessed.GroupResource()
	for _, gv := range r.scheme.VersionsForGroupKind(gk) {
		if resource, _, err := r.resource(gv.WithKind(gk.Kind)); err == nil {
			of = resource.GroupResource()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reported[judge.Unwatched{Controller: key[0], Object: key[1], Step: step, Kind: of.String(), Read: r.running[id][of].object, Site: site(r.running[id][of].stack)}] = true
}

// site returns the line of code of a read, empty if it is not known.
func site(stack []uintptr) string {
	sites := writes.Sites(stack)
	if len(sites) == 0 {
		return ""
	}
	return sites[0].String()
}

// unwatched returns what was read, and is watched by nothing, by the last reconcile of an object that
// nothing wakes by itself: one object for each controller and kind. An engine is asked itself. A
// process without a handler is one whose caches are not seen.
func (r *reads) unwatched() []judge.Unwatched {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.Collect(maps.Keys(r.reported))
	if len(r.watched) == 0 {
		return list
	}
	for key, all := range r.last {
		for of, read := range all {
			if !read.engine && !r.watched[of] && !r.outside[of] {
				list = append(list, judge.Unwatched{Controller: key[0], Object: key[1], Kind: of.String(), Read: read.object, Site: site(read.stack)})
			}
		}
	}
	slices.SortFunc(list, func(a, b judge.Unwatched) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Step, b.Step))
	})
	return list
}
