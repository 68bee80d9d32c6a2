// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/crd"
)

// Import stores objects as another server has them: their UIDs, resource versions, managed fields,
// times and statuses stay as they are, and nothing is validated or garbage collected. Defaults are
// set, which a server does with what it has stored, too; objects that were written by hand need it.
// An object that is there already is replaced. The kinds of imported CustomResourceDefinitions are
// served at once. OnChange is not called, because nothing has changed; watches get the objects.
//
// Import takes the objects over: the caller must not change them any more. It returns an error for
// an object without a resource version, or of a kind that the server does not know, and has then
// stored those before it.
func (s *Server) Import(objects ...map[string]any) error {
	s.mu.Lock()
	defer s.unlock()
	for _, content := range objects {
		if err := importOne(s, content); err != nil {
			return err
		}
	}
	return nil
}

func importOne(s *Server, content map[string]any) error {
	obj := &unstructured.Unstructured{Object: content}
	gvk := obj.GroupVersionKind()
	k, ok := s.catalog.byKind(gvk)
	if !ok {
		return fmt.Errorf("importing %s %s/%s: the server has no such kind", gvk, obj.GetNamespace(), obj.GetName())
	}
	revision, err := strconv.ParseUint(obj.GetResourceVersion(), 10, 64)
	if err != nil {
		return fmt.Errorf("importing %s %s/%s: its resource version %q is not a number", gvk, obj.GetNamespace(), obj.GetName(), obj.GetResourceVersion())
	}
	(&writeContext{kind: k}).setDefaults(obj)
	if k.storage == definitionsStorage {
		if err := serveImported(s, obj); err != nil {
			return err
		}
	}
	t := s.store.table(k)
	at := key{obj.GetNamespace(), obj.GetName()}
	v := &version{namespace: at.namespace, name: at.name, uid: obj.GetUID(), revision: revision, content: content}
	e := event{revision: max(s.store.revision, revision), kind: k, old: t.objects[at], new: v}
	s.store.revision = e.revision
	t.objects[at], t.order = v, nil
	for _, watch := range s.store.watches {
		watch.offer(e)
	}
	return nil
}

// serveImported serves the kinds of a definition that is imported.
func serveImported(s *Server, obj *unstructured.Unstructured) error {
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
		return fmt.Errorf("importing definition %q: %w", obj.GetName(), err)
	}
	compiled, errs := crd.Compile(d)
	if len(errs) > 0 {
		return fmt.Errorf("importing definition %q: %w", obj.GetName(), errs.ToAggregate())
	}
	s.catalog.serve(compiled)
	return nil
}

// Error returns the status of an answer that is no success as an error, and nil for any other.
func (r *Response) Error() error {
	if r.Code < http.StatusMultipleChoices {
		return nil
	}
	return statusError(r)
}
