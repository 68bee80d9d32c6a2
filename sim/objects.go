// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
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
	kind := fmt.Sprintf("%T", obj)
	if gvk, err := apiutil.GVKForObject(obj, r.scheme); err == nil {
		kind = gvk.Kind
	}
	return kind + " " + client.ObjectKeyFromObject(obj).String()
}

// nameInPlans returns the text by which plans name an object, or "" if its kind is not known.
func (r *run) nameInPlans(obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, r.scheme)
	if err != nil {
		return ""
	}
	resource, namespaced, err := r.cluster.Server.ResourceFor(gvk)
	switch {
	case err != nil:
		return ""
	case !namespaced:
		return cluster.ObjectName(resource, "", obj.GetName())
	}
	return cluster.ObjectName(resource, obj.GetNamespace(), obj.GetName())
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
	namespace := obj.GetNamespace()
	if !namespaced {
		namespace = ""
	}
	return cluster.CollectionPath(resource, namespace), body, nil
}

func (r *run) createObject(actor string, obj client.Object) error {
	collection, body, err := r.encode(obj)
	if err != nil {
		return err
	}
	_, err = r.cluster.Ask(actor, http.MethodPost, collection, "application/json", body)
	return err
}

func (r *run) deleteObject(actor string, obj client.Object) error {
	collection, _, err := r.encode(obj)
	if err != nil {
		return err
	}
	_, err = r.cluster.Ask(actor, http.MethodDelete, collection+"/"+obj.GetName(), "application/json", []byte(`{"propagationPolicy":"Background"}`))
	return err
}

func (r *run) getObject(actor string, into client.Object) error {
	collection, _, err := r.encode(into)
	if err != nil {
		return err
	}
	body, err := r.cluster.Ask(actor, http.MethodGet, collection+"/"+into.GetName(), "", nil)
	if err != nil {
		return err
	}
	zero(into)
	return json.Unmarshal(body, into)
}

func (r *run) putObject(actor string, obj client.Object, subresource string) error {
	collection, body, err := r.encode(obj)
	if err != nil {
		return err
	}
	path := collection + "/" + obj.GetName()
	if subresource != "" {
		path += "/" + subresource
	}
	_, err = r.cluster.Ask(actor, http.MethodPut, path, "application/json", body)
	return err
}

// zero empties an object, so that decoding into it leaves nothing of what it was.
func zero(obj client.Object) {
	v := reflect.ValueOf(obj).Elem()
	v.Set(reflect.Zero(v.Type()))
}

var defaultScheme = sync.OnceValue(func() *runtime.Scheme { return clientgoscheme.Scheme })

func schemeOf(w *Workload) *runtime.Scheme {
	if w.Scheme != nil {
		return w.Scheme
	}
	return defaultScheme()
}
