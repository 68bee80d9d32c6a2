// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/cluster/live"
	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
)

// A Request says what to record.
type Request struct {
	// Objects are recorded with what they own, are owned by and refer to. They are the subjects.
	Objects []Wanted

	// All objects of Kinds are recorded, of the Namespace, or of all if it is empty, and what
	// belongs to them. If there are neither Objects nor Kinds, everything in the Namespace is.
	Kinds     []schema.GroupKind
	Namespace string

	// Serves reports whether a replay can have objects of a kind, which may be defined. It may be
	// nil.
	Serves func(schema.GroupVersionKind) bool
}

// Wanted names an object.
type Wanted struct {
	Resource        schema.GroupVersionResource
	Namespace, Name string
}

// skipped are resources whose objects last for seconds, or are about processes.
var skipped = map[schema.GroupResource]bool{
	{Group: "coordination.k8s.io", Resource: "leases"}: true,
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
	{Resource: "componentstatuses"}:              true,
}

var resourceOfSecrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// reader reads a cluster.
type reader struct {
	client    dynamic.Interface
	resources []live.Resource
	loaded    map[string]bool // namespaces; "" stands for all
	objects   map[types.UID]*unstructured.Unstructured
	order     []types.UID
	unread    map[string]string
}

// Collect reads a recording from a cluster, with its Secrets as they are: see Hide. It also returns
// the other Secrets, as far as they can be read. The cluster is only read, with the rights of the
// configuration's user; what that may not read is named in the recording.
func Collect(ctx context.Context, config *rest.Config, request Request) (*Recording, []*unstructured.Unstructured, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.WarningHandlerWithContext = 50, 100, rest.NoWarnings{}
	r := &reader{loaded: map[string]bool{}, objects: map[types.UID]*unstructured.Unstructured{}, unread: map[string]string{}}
	var err error
	if r.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, nil, fmt.Errorf("recording: %w", err)
	}
	recorded := time.Now().UTC().Truncate(time.Second)
	named, err := r.named(ctx, request.Objects)
	if err != nil {
		return nil, nil, err
	}
	if err := r.discover(config); err != nil {
		return nil, nil, err
	}
	for _, namespace := range namespacesOf(request, named) {
		r.load(ctx, namespace)
	}
	start := r.start(request, named)
	chosen := r.related(ctx, start, named)
	recording := &Recording{Head: Head{Recorded: recorded}}
	for _, obj := range chosen {
		if request.Serves == nil || request.Serves(obj.GroupVersionKind()) || r.definitionOf(obj.GroupVersionKind()) != nil {
			recording.Objects = append(recording.Objects, obj.DeepCopy())
			continue
		}
		r.unread[obj.GroupVersionKind().GroupKind().String()] = "no replay can have this kind: it has no definition"
	}
	recording.addSubjects(start, len(named) > 0, r)
	recording.completeOwners(r)
	others := r.otherSecrets(ctx, recording)
	for _, what := range slices.Sorted(maps.Keys(r.unread)) {
		recording.Unread = append(recording.Unread, what+": "+r.unread[what])
	}
	return recording, others, nil
}

// named reads the objects that were named.
func (r *reader) named(ctx context.Context, wanted []Wanted) ([]*unstructured.Unstructured, error) {
	var list []*unstructured.Unstructured
	for _, w := range wanted {
		obj, err := r.client.Resource(w.Resource).Namespace(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading %s %q: %w", w.Resource.Resource, w.Name, err)
		}
		r.add(obj)
		list = append(list, obj)
	}
	return list, nil
}

func (r *reader) add(obj *unstructured.Unstructured) {
	if r.objects[obj.GetUID()] == nil {
		r.objects[obj.GetUID()] = obj
		r.order = append(r.order, obj.GetUID())
	}
}

// namespacesOf returns the namespaces that are read: all if an object has none, because what it
// owns may be in any.
func namespacesOf(request Request, named []*unstructured.Unstructured) []string {
	if len(named) == 0 {
		return []string{request.Namespace}
	}
	set := map[string]bool{}
	for _, obj := range named {
		if obj.GetNamespace() == "" {
			return []string{""}
		}
		set[obj.GetNamespace()] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// discover asks for what can be listed.
func (r *reader) discover(config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("recording: %w", err)
	}
	resources, silent, err := live.Resources(client, "list", "create")
	if err != nil {
		return err
	}
	for group, err := range silent {
		r.unread[group] = err.Error()
	}
	r.resources = slices.DeleteFunc(resources, func(of live.Resource) bool { return skipped[of.GroupResource()] })
	return nil
}

// load reads all objects of a namespace, or of all, and at first those that have none.
func (r *reader) load(ctx context.Context, namespace string) {
	if r.loaded[namespace] || r.loaded[""] {
		return
	}
	first := len(r.loaded) == 0
	r.loaded[namespace] = true
	for _, resource := range r.resources {
		switch {
		case resource.Namespaced:
			r.list(ctx, resource.GroupVersionResource, namespace, r.add)
		case first:
			r.list(ctx, resource.GroupVersionResource, "", r.add)
		}
	}
}

// list reads the objects of a resource.
func (r *reader) list(ctx context.Context, of schema.GroupVersionResource, namespace string, add func(*unstructured.Unstructured)) {
	err := live.Each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.client.Resource(of).Namespace(namespace).List(ctx, o)
	}, add)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
		r.unread[of.GroupResource().String()] = err.Error()
	}
}

// otherSecrets returns the Secrets that are not recorded, of the whole cluster if that may be read.
func (r *reader) otherSecrets(ctx context.Context, recording *Recording) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	add := func(obj *unstructured.Unstructured) {
		if secrets.Is(obj) && recording.Find(SubjectOf(obj)) == nil {
			list = append(list, obj)
		}
	}
	if r.loaded[""] {
		for _, uid := range r.order {
			add(r.objects[uid])
		}
		return list
	}
	before := r.unread[resourceOfSecrets.Resource]
	delete(r.unread, resourceOfSecrets.Resource)
	r.list(ctx, resourceOfSecrets, "", add)
	if why := r.unread[resourceOfSecrets.Resource]; why != "" {
		r.unread["secrets of all namespaces"] = "copies of their values in recorded objects would not be found: " + why
		delete(r.unread, resourceOfSecrets.Resource)
		for _, uid := range r.order {
			add(r.objects[uid])
		}
	}
	if before != "" {
		r.unread[resourceOfSecrets.Resource] = before
	}
	return list
}
