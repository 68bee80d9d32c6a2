// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A subresource is one that the server serves.
type subresource struct {
	name  string
	gvk   schema.GroupVersionKind // of its objects; without a version if they are those of the resource
	verbs []string
}

var writable = []string{"get", "patch", "update"}

// extraSubresources are those beside status and scale.
var extraSubresources = map[schema.GroupResource][]subresource{
	podsStorage: {
		{"binding", schema.GroupVersionKind{Kind: "Binding"}, []string{"create"}},
		{"eviction", schema.GroupVersionKind{Group: "policy", Version: "v1", Kind: "Eviction"}, []string{"create"}},
	},
	accountsStorage:        {{"token", tokenRequests.gvk, []string{"create"}}},
	signingRequestsStorage: {{"approval", schema.GroupVersionKind{Kind: "CertificateSigningRequest"}, writable}},
}

// finalize is the subresource of Namespaces that clears their finalizers.
var finalize = subresource{"finalize", schema.GroupVersionKind{Kind: "Namespace"}, []string{"update"}}

// served returns the subresources that discovery lists.
func (k *kind) served() []subresource {
	var list []subresource
	if k.status {
		list = append(list, subresource{"status", schema.GroupVersionKind{Kind: k.gvk.Kind}, writable})
	}
	if k.scale != nil {
		list = append(list, subresource{"scale", scaleKind.WithVersion("v1"), writable})
	}
	if k.definition == nil {
		list = append(list, extraSubresources[k.storage]...)
	}
	return list
}

// describe returns the entry of a subresource of a kind in discovery.
func (s subresource) describe(k *kind) map[string]any {
	entry := map[string]any{"name": k.gvr.Resource + "/" + s.name, "singularName": "", "namespaced": k.namespaced, "kind": s.gvk.Kind, "verbs": s.verbs}
	if s.gvk.Version != "" {
		entry["group"], entry["version"] = s.gvk.Group, s.gvk.Version
	}
	return entry
}

// serves returns a failure if a request is for a subresource that the kind does not have, or with a
// method that the subresource does not have.
func (k *kind) serves(r *Request) *failure {
	if r.Subresource == "" {
		return nil
	}
	list := k.served()
	if k.storage == namespacesStorage {
		list = append(list, finalize)
	}
	for _, s := range list {
		if s.name != r.Subresource {
			continue
		}
		if !slices.Contains(s.verbs, r.Verb) {
			return methodNotAllowed()
		}
		return nil
	}
	switch {
	case k.definition != nil:
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name))
	case k.hasSubresource(r.Subresource):
		return notImplemented(fmt.Sprintf("the subresource %s of %s%s", r.Subresource, k.gvr.Resource, k.whyMissing(r.Subresource)))
	}
	return notFoundPath()
}

// whyMissing says why a subresource of a kind is missing, as far as there is a reason beyond effort.
func (k *kind) whyMissing(subresource string) string {
	name, _, _ := strings.Cut(subresource, "/")
	switch {
	case k.storage == podsStorage && slices.Contains([]string{"log", "exec", "attach", "portforward", "proxy"}, name):
		return ", because no container runs"
	case name == "proxy":
		return ", because nothing listens behind it"
	}
	return ""
}

// methodNotAllowed is the answer of the real server to a method that a resource does not have.
func methodNotAllowed() *failure {
	return &failure{metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed, Details: &metav1.StatusDetails{},
		Message: "the server does not allow this method on the requested resource",
	}}
}
