// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// Requests about single objects, on behalf of users and others. They go to the server at once, in
// the driver.

// kindOfObject names the kind of an object in errors, where a resource is expected. Typed objects
// do not carry their kind, so the scheme is asked.
func (r *run) kindOfObject(obj client.Object) schema.GroupResource {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}
	}
	return schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}
}

func (r *run) describeObject(obj client.Object) string {
	return r.kindOfObject(obj).Resource + " " + client.ObjectKeyFromObject(obj).String()
}

// nameInPlans returns the text by which plans name an object, or "" if its kind is not known.
func (r *run) nameInPlans(obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return ""
	}
	resource, namespaced, err := r.cluster.Server.ResourceFor(gvk)
	if err != nil {
		return ""
	}
	return cluster.ObjectName(resource, namespaceOf(obj, namespaced), obj.GetName())
}

// encode returns the path of the kind of an object, in its namespace, and the object encoded with
// its kind, which typed objects do not carry.
func (r *run) encode(obj client.Object) (collection string, body []byte, err error) {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return "", nil, fmt.Errorf("%T is not in Workload.Scheme: %w", obj, err)
	}
	resource, namespaced, err := r.cluster.Server.ResourceFor(gvk)
	if err != nil {
		return "", nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return "", nil, fmt.Errorf("encoding %s: %w", gvk.Kind, err)
	}
	content["apiVersion"], content["kind"] = gvk.ToAPIVersionAndKind()
	body, err = json.Marshal(content)
	if err != nil {
		return "", nil, fmt.Errorf("encoding %s: %w", gvk.Kind, err)
	}
	return cluster.CollectionPath(resource, namespaceOf(obj, namespaced)), body, nil
}

// namespaceOf returns the namespace of an object, which may have one although its kind has none.
func namespaceOf(obj client.Object, namespaced bool) string {
	if !namespaced {
		return ""
	}
	return obj.GetNamespace()
}

// askAbout sends a request about an object on behalf of an actor, or about its subresource, and returns the
// body of the answer.
func (r *run) askAbout(actor, method string, obj client.Object, subresource string) ([]byte, error) {
	path, body, err := r.encode(obj)
	if err != nil {
		return nil, err
	}
	if method != http.MethodPost {
		path += "/" + obj.GetName()
	}
	if subresource != "" {
		path += "/" + subresource
	}
	switch method {
	case http.MethodGet:
		body = nil
	case http.MethodDelete:
		body = []byte(`{"propagationPolicy":"Background"}`)
	}
	return r.cluster.Ask(actor, method, path, "application/json", body)
}

func (r *run) createObject(obj client.Object) error {
	if r.played == nil {
		_, err := r.askAbout("user", http.MethodPost, obj, "")
		return err
	}
	collection, body, err := r.encode(obj)
	if err != nil {
		return err
	}
	if body, err = r.played.create(body); err != nil {
		return err
	}
	_, err = r.cluster.Ask("user", http.MethodPost, collection, "application/json", body)
	return r.played.unlessRefused(err)
}

// getObject reads an object into one of its kind and name.
func (r *run) getObject(into client.Object) error {
	body, err := r.askAbout("user", http.MethodGet, into, "")
	if err != nil {
		return err
	}
	zero(into)
	return json.Unmarshal(body, into)
}

// zero empties an object, so that decoding into it leaves nothing of what it was.
func zero(obj client.Object) {
	v := reflect.ValueOf(obj).Elem()
	v.Set(reflect.Zero(v.Type()))
}

func schemeOf(w *Workload) *runtime.Scheme {
	if w.Scheme != nil {
		return w.Scheme
	}
	return clientgoscheme.Scheme
}
