// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// Ignored reports whether operators write a kind beside their work: such writes are neither places
// for faults nor part of what worlds are compared by.
func Ignored(r schema.GroupVersionResource) bool {
	switch r.Resource {
	case "events":
		return r.Group == "" || r.Group == "events.k8s.io"
	case "leases":
		return r.Group == "coordination.k8s.io"
	}
	return false
}

// IsWrite reports whether a request counts as a write.
func IsWrite(r *apiserver.Request) bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return !Ignored(r.Resource) && !r.DryRun
	}
	return false
}

// IsRead reports whether a request counts as a read.
func IsRead(r *apiserver.Request) bool {
	return (r.Verb == "get" || r.Verb == "list") && !Ignored(r.Resource)
}

// IsApply reports whether a request is a server-side apply.
func IsApply(r *apiserver.Request) bool {
	return r.Verb == "patch" && strings.HasPrefix(r.ContentType, "application/apply-patch")
}

// UID matches the UID of an object.
var UID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// IsOperator reports whether an actor is a process of the operator.
func IsOperator(actor string) bool { return strings.HasPrefix(actor, "operator") }

// IsSecret reports whether a kind is that of Secrets.
func IsSecret(r schema.GroupVersionResource) bool { return r.Resource == "secrets" && r.Group == "" }

// IsSecretData reports whether a field of a Secret may have its data: kubectl keeps a copy in an
// annotation.
func IsSecretData(path string) bool {
	return strings.HasPrefix(path, ".data") || strings.HasPrefix(path, ".stringData") || strings.HasPrefix(path, ".metadata.annotations")
}

// ObjectName returns the text by which plans name an object: "configmaps default/x",
// "backups.demo.example.com default/x".
func ObjectName(r schema.GroupVersionResource, namespace, name string) string {
	return r.GroupResource().String() + " " + namespace + "/" + name
}

// TargetOf returns the text by which plans name the object of a request.
func TargetOf(r *apiserver.Request) string {
	return ObjectName(r.Resource, r.Namespace, NameOf(r))
}

// NameOf returns the name of the object of a request, which a creation has in its body. A name that
// the server generates ends in "*".
func NameOf(r *apiserver.Request) string {
	if r.Name != "" || r.Verb != "create" {
		return r.Name
	}
	var body struct {
		Metadata struct{ Name, GenerateName string }
	}
	if err := json.Unmarshal(r.Body, &body); err != nil {
		return ""
	}
	if body.Metadata.Name == "" && body.Metadata.GenerateName != "" {
		return body.Metadata.GenerateName + "*"
	}
	return body.Metadata.Name
}

// contentOf returns the object in the body of a request, which may be YAML if it is an apply; nil if
// there is none.
func contentOf(r *apiserver.Request) map[string]any {
	var content map[string]any
	if yaml.Unmarshal(r.Body, &content) != nil {
		return nil
	}
	return content
}

// CanonicalName returns the name of an object with "*" for what the server has generated of it.
func CanonicalName(name string, content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	if generate, ok := metadata["generateName"].(string); ok && generate != "" && strings.HasPrefix(name, generate) {
		return generate + "*"
	}
	return name
}

// CollectionPath returns the path of a kind, in a namespace unless it is empty.
func CollectionPath(r schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + r.Group + "/" + r.Version
	if r.Group == "" {
		path = "/api/" + r.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.Resource
}

// Describe says what a request asks for.
func Describe(r *apiserver.Request) string {
	if r.Verb == "" {
		return r.Method + " " + r.Path
	}
	text := r.Verb
	if IsApply(r) {
		text = "apply"
	}
	text += " " + r.Resource.GroupResource().String()
	name := NameOf(r)
	switch {
	case r.Namespace != "" && name != "":
		text += " " + r.Namespace + "/" + name
	case name != "":
		text += " " + name
	case r.Namespace != "":
		text += " in " + r.Namespace
	}
	if r.Subresource != "" {
		text += " " + r.Subresource
	}
	return text
}

// DescribeAnswer says what a request asked for, and what the answer was.
func DescribeAnswer(text string, response *apiserver.Response) string {
	return text + " -> " + reasonOf(response)
}

// CreatedBy returns the object that a request creates, if it is one that may create an object.
func CreatedBy(r *apiserver.Request) (*unstructured.Unstructured, bool) {
	if r.Verb != "create" && !IsApply(r) || r.Subresource != "" {
		return nil, false
	}
	content := contentOf(r)
	if _, ok := content["metadata"].(map[string]any); !ok {
		return nil, false
	}
	obj := &unstructured.Unstructured{Object: content}
	if r.Name != "" {
		obj.SetName(r.Name)
	}
	if r.Namespace != "" {
		obj.SetNamespace(r.Namespace)
	}
	return obj, true
}

// IsOwned reports whether an object has an owner that it can lose: one whose UID is not part of the
// object's name.
func IsOwned(obj *unstructured.Unstructured) bool {
	references := obj.GetOwnerReferences()
	for _, reference := range references {
		if strings.Contains(obj.GetName()+obj.GetGenerateName(), string(reference.UID)) {
			return false
		}
	}
	return len(references) > 0
}
