// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// openAPIPath is where the server describes its kinds: a list of documents, and below it one document
// for each group and version.
const openAPIPath = "/openapi/v3"

// serveOpenAPI answers a request for a path below openAPIPath. The documents have what kubectl looks
// for: the schemas of the kinds, which paths serve them, and that requests are validated by the server.
func (c *catalog) serveOpenAPI(path string) *Response {
	if path == openAPIPath {
		paths := map[string]any{}
		for _, k := range c.all() {
			at := strings.TrimPrefix(groupVersionPath(k.gvr.GroupVersion()), "/")
			paths[at] = map[string]any{"serverRelativeURL": openAPIPath + "/" + at}
		}
		return respond(http.StatusOK, encode(map[string]any{"paths": paths}))
	}
	doc := document{schemas: builtin.Schemas{}, paths: map[string]any{}}
	for _, k := range c.all() {
		if openAPIPath+groupVersionPath(k.gvr.GroupVersion()) == path {
			doc.add(k)
		}
	}
	if len(doc.paths) == 0 {
		return notFoundPath().response()
	}
	return respond(http.StatusOK, encode(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": kubernetesVersion},
		"paths": doc.paths, "components": map[string]any{"schemas": doc.schemas},
	}))
}

// groupVersionPath returns where a group and version is served.
func groupVersionPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// document is the description of the kinds of a group and version.
type document struct {
	schemas builtin.Schemas
	paths   map[string]any
}

func (d document) add(k *kind) {
	if k.definition != nil {
		if k.definition.Compile() != nil {
			return // as a definition that is not accepted
		}
		d.schemas.AddType(metav1.ObjectMeta{})
		d.schemas[k.definition.SchemaName()] = k.definition.Schema(builtin.SchemaPrefix)
	} else {
		d.schemas.AddKind(k.gvk)
	}
	collection := groupVersionPath(k.gvr.GroupVersion())
	if k.namespaced {
		collection += "/namespaces/{namespace}"
	}
	collection += "/" + k.gvr.Resource
	verbs := map[string]map[string]string{ // by path, the methods of verbs
		collection:             {"list": "get", "create": "post", "deletecollection": "delete"},
		collection + "/{name}": {"get": "get", "update": "put", "patch": "patch", "delete": "delete"},
	}
	for path, methods := range verbs {
		operations := map[string]any{}
		for _, verb := range k.verbs {
			if method, ok := methods[verb]; ok {
				operations[method] = k.operation(verb)
			}
		}
		if len(operations) > 0 {
			d.paths[path] = operations
		}
	}
}

// operation describes what a verb does.
func (k *kind) operation(verb string) map[string]any {
	op := map[string]any{
		"x-kubernetes-action":             verb,
		"x-kubernetes-group-version-kind": map[string]any{"group": k.gvk.Group, "version": k.gvk.Version, "kind": k.gvk.Kind},
		"responses":                       map[string]any{"200": map[string]any{"description": "OK"}},
	}
	parameters := map[string][]string{
		"create": {"dryRun", "fieldManager", "fieldValidation"}, "update": {"dryRun", "fieldManager", "fieldValidation"},
		"patch": {"dryRun", "fieldManager", "fieldValidation", "force"}, "delete": {"dryRun", "propagationPolicy"},
	}
	var list []any
	for _, name := range parameters[verb] {
		kind := "string"
		if name == "force" {
			kind = "boolean"
		}
		list = append(list, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": kind}})
	}
	if list != nil {
		op["parameters"] = list
	}
	if verb == "patch" {
		types := []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
		if k.definition == nil {
			types = append(types, "application/strategic-merge-patch+json")
		}
		content := map[string]any{}
		for _, t := range types {
			content[t] = map[string]any{"schema": map[string]any{"type": "object"}}
		}
		op["requestBody"] = map[string]any{"content": content, "required": true}
	}
	return op
}
