// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A Source is a cluster that is copied while it is used: the objects of a resource are read when a
// client first asks for that resource, and then belong to the copy. A Source is only read. Its
// methods are called one at a time.
type Source interface {
	// Read returns all objects of a resource, each with its apiVersion, its kind and its resource
	// version, in the given version or another one. The copy takes them over. An error is the
	// answer to all requests for that resource: an apierrors.APIStatus as it is, any other as an
	// internal error.
	Read(ctx context.Context, resource schema.GroupVersionResource) ([]map[string]any, error)

	// Dependents returns the resources which have objects with an owner reference to one of these
	// UIDs, or are in a namespace with one of them, and the UIDs of these objects. It is called
	// before objects are deleted, because their dependents, of whatever kind, are deleted with
	// them.
	Dependents(ctx context.Context, owners []types.UID) ([]schema.GroupVersionResource, []types.UID, error)
}

// notCopied are resources with objects that last for seconds, or are about processes of the source:
// a Lease of the running operator would keep the one that uses the copy from working.
var notCopied = map[schema.GroupResource]bool{
	{Group: "coordination.k8s.io", Resource: "leases"}: true,
	{Resource: "events"}:                         true,
	{Group: "events.k8s.io", Resource: "events"}: true,
	{Resource: "componentstatuses"}:              true,
}

// companions are what players read and write for the objects of a resource. Without them, a player
// would make the Pods of a Deployment again.
var companions = map[schema.GroupResource][]schema.GroupVersionResource{
	{Group: "apps", Resource: "deployments"}:  {{Group: "apps", Version: "v1", Resource: "replicasets"}},
	{Group: "apps", Resource: "replicasets"}:  {pods},
	{Group: "apps", Resource: "statefulsets"}: {{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, claims, pods},
	{Group: "apps", Resource: "daemonsets"}:   {{Group: "apps", Version: "v1", Resource: "controllerrevisions"}, nodes, pods},
	{Group: "batch", Resource: "jobs"}:        {pods},
	{Resource: "pods"}:                        {nodes, claims},
	{Resource: "persistentvolumeclaims"}:      {{Version: "v1", Resource: "persistentvolumes"}},
	{Resource: "services"}:                    {{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}, {Version: "v1", Resource: "endpoints"}},
}

var (
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodes       = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// original is what a copy knows of the cluster that it is a copy of.
type original struct {
	source Source

	mu   sync.Mutex                     // held while the source is read; guards what follows
	read map[schema.GroupResource]error // the resources that were read, with the error if they could not be
}

// copyFrom begins a copy with the definitions and the namespaces of a source. Definitions that
// can't be read make the kinds unknown which they define, and requests for these are answered with
// 404.
func (c *Cluster) copyFrom(source Source) error {
	c.copied = &original{source: source, read: map[schema.GroupResource]error{}}
	for _, resource := range []schema.GroupVersionResource{definitions, namespaces, accounts} {
		if err := c.Read(resource); err != nil && !isRefusal(err) {
			return err
		}
	}
	return nil
}

// isRefusal reports whether the source has answered, but not with what was asked for.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// Read copies the objects of a resource from the source, unless they were copied before, with those
// of the kinds of their owners, and what players need with them. It does nothing if the cluster is
// no copy. The error is that of the source.
func (c *Cluster) Read(resource schema.GroupVersionResource) error {
	if c.copied == nil {
		return nil
	}
	c.copied.mu.Lock()
	defer c.copied.mu.Unlock()
	return c.readAll(resource)
}

// readAll reads a resource, and then what belongs to it. Only the error of the first counts: what
// belongs to it is missing from the copy if it can't be read, and the source knows.
func (c *Cluster) readAll(resource schema.GroupVersionResource) error {
	first, known := c.copied.read[resource.GroupResource()]
	if known {
		return first
	}
	queue := []schema.GroupVersionResource{resource}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if _, done := c.copied.read[next.GroupResource()]; done || notCopied[next.GroupResource()] || !c.serves(next) {
			continue
		}
		owners, err := c.readOne(next)
		c.copied.read[next.GroupResource()] = err
		if next == resource {
			first = err
		}
		queue = append(append(queue, companions[next.GroupResource()]...), owners...)
	}
	return first
}

// serves reports whether the copy has a resource whose objects can be listed.
func (c *Cluster) serves(resource schema.GroupVersionResource) bool {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	request, err := apiserver.NewRequest(http.MethodGet, path+"/"+resource.Resource+"?limit=1", "", nil)
	return err == nil && c.server.Serve(request).Code < http.StatusMultipleChoices
}

// readOne reads one resource, and returns those of the owners of its objects.
func (c *Cluster) readOne(resource schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	objects, err := c.copied.source.Read(c.stopping, resource)
	if err != nil {
		return nil, err
	}
	owners := map[schema.GroupVersionResource]bool{}
	c.turn.Lock()
	defer c.turn.Unlock()
	for _, content := range objects {
		obj := &unstructured.Unstructured{Object: content}
		if ns := obj.GetNamespace(); ns != "" {
			if err := c.haveNamespace(ns); err != nil {
				return nil, err
			}
		}
		if err := c.server.Import(content); err != nil {
			return nil, err
		}
		c.players.Known(apiserver.Object{Resource: resource, Namespace: obj.GetNamespace(), Name: obj.GetName(), Content: content})
		for _, o := range obj.GetOwnerReferences() {
			gv, err := schema.ParseGroupVersion(o.APIVersion)
			if err != nil {
				continue // the garbage collector of the source does not understand it, either
			}
			if gvr, _, err := c.server.ResourceFor(gv.WithKind(o.Kind)); err == nil {
				owners[gvr] = true
			}
		}
	}
	if resource == nodes && len(objects) == 0 && c.played {
		if err := c.createNode(); err != nil {
			return nil, err
		}
	}
	return slices.SortedFunc(maps.Keys(owners), func(a, b schema.GroupVersionResource) int {
		return slices.Compare([]string{a.Group, a.Resource}, []string{b.Group, b.Resource})
	}), nil
}

// haveNamespace makes up the namespace of objects if namespaces could not be read.
func (c *Cluster) haveNamespace(name string) error {
	for _, o := range c.server.Objects() {
		if o.Resource == namespaces && o.Name == name {
			return nil
		}
	}
	return c.server.Import(map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": name, "uid": "namespace-" + name, "resourceVersion": "1", "creationTimestamp": time.Now().UTC().Format(time.RFC3339),
			"labels": map[string]any{"kubernetes.io/metadata.name": name},
		},
		"spec": map[string]any{"finalizers": []any{"kubernetes"}}, "status": map[string]any{"phase": "Active"},
	})
}

// readDependents copies what is deleted with objects, of whatever kind.
func (c *Cluster) readDependents(owners []types.UID) error {
	c.copied.mu.Lock()
	defer c.copied.mu.Unlock()
	seen := map[types.UID]bool{}
	for _, uid := range owners {
		seen[uid] = true
	}
	for len(owners) > 0 {
		resources, uids, err := c.copied.source.Dependents(c.stopping, owners)
		if err != nil {
			return err
		}
		for _, resource := range resources {
			if err := c.readAll(resource); err != nil && !isRefusal(err) {
				return err
			}
		}
		owners = nil
		for _, u := range uids {
			if !seen[u] {
				seen[u], owners = true, append(owners, u)
			}
		}
	}
	return nil
}

// serve answers a request of a client, after what it is about was copied.
func (c *Cluster) serve(w http.ResponseWriter, r *http.Request, request *apiserver.Request) {
	if c.asked != nil {
		c.asked(request)
	}
	if err := c.prepare(request); err != nil {
		refuse(w, err)
		return
	}
	c.server.ServeRequest(w, r, request, &c.turn)
}

// prepare copies what a request needs to be answered.
func (c *Cluster) prepare(request *apiserver.Request) error {
	if c.copied == nil || request.Verb == "" {
		return nil
	}
	if err := c.Read(request.Resource); err != nil {
		return err
	}
	if request.Namespace != "" && request.Verb == "deletecollection" || request.Verb == "delete" && request.Name != "" {
		return c.prepareDeletion(request)
	}
	return nil
}

// prepareDeletion copies the dependents of the objects that a request deletes.
func (c *Cluster) prepareDeletion(request *apiserver.Request) error {
	var uids []types.UID
	for _, o := range c.server.Objects() {
		if o.Resource.GroupResource() == request.Resource.GroupResource() && o.Namespace == request.Namespace && (request.Name == "" || o.Name == request.Name) {
			uids = append(uids, (&unstructured.Unstructured{Object: o.Content}).GetUID())
		}
	}
	return c.readDependents(uids)
}

// refuse answers a request with an error of the source.
func refuse(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(fmt.Errorf("reading the cluster that this is a copy of: %w", err))
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(max(status.Code, http.StatusBadRequest)))
	_ = json.NewEncoder(w).Encode(status) //nolint:errcheck // the client is gone
}

// Do sends a request to the cluster on behalf of an actor, whose name changes carry, and returns
// the object that it is answered with. agent is the user agent, which is also the default field
// manager. body is encoded as JSON; it may be nil. The error has the status of the answer.
func (c *Cluster) Do(actor, agent, method, path, contentType string, body any) (*unstructured.Unstructured, error) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			return nil, fmt.Errorf("encoding the body of %s %s: %w", method, path, err)
		}
	}
	request, err := apiserver.NewRequest(method, path, contentType, data)
	if err != nil {
		return nil, err
	}
	request.Actor, request.UserAgent = actor, agent
	if err := c.prepare(request); err != nil {
		return nil, err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	response := c.server.Serve(request)
	for c.server.Work() { //nolint:revive // each call does one piece of work
	}
	if response.Code >= http.StatusMultipleChoices {
		return nil, response.Error()
	}
	content := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(response.Body, &content.Object); err != nil {
		return nil, fmt.Errorf("reading the answer to %s %s: %w", method, path, err)
	}
	return content, nil
}

// Exclusively lets something happen at once: no request is answered and no player acts while it does,
// and the server's own controllers have done their work when it has. Do calls no method of the cluster.
func (c *Cluster) Exclusively(do func(*apiserver.Server)) {
	c.turn.Lock()
	defer c.turn.Unlock()
	do(c.server)
	for c.server.Work() { //nolint:revive // each call does one piece of work
	}
}

// Objects returns all objects of the cluster, ordered by resource, namespace and name, without
// those that are still in the source only. Their contents are read-only.
func (c *Cluster) Objects() []apiserver.Object {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.server.Objects()
}

// ResourceFor returns the resource of a kind, and whether its objects are namespaced.
func (c *Cluster) ResourceFor(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	return c.server.ResourceFor(gvk)
}
