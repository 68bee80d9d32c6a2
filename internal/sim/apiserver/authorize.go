// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// administrator is the user of requests without one.
var administrator = &user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

// ServiceAccount returns the user as which the Pods of a ServiceAccount make requests, for
// [Request].User.
func ServiceAccount(namespace, name string) user.Info {
	groups := append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name), Groups: groups}
}

// impersonated returns the user that the headers of a request name, if they name one.
func impersonated(h http.Header) user.Info {
	name := h.Get("Impersonate-User")
	if name == "" {
		return nil
	}
	groups := slices.Clone(h.Values("Impersonate-Group"))
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil && len(groups) == 0 {
		groups = serviceaccount.MakeGroupNames(namespace)
	}
	if !slices.Contains(groups, user.AllAuthenticated) {
		groups = append(groups, user.AllAuthenticated)
	}
	return &user.DefaultInfo{Name: name, UID: h.Get("Impersonate-Uid"), Groups: groups}
}

// user returns the user of a request.
func (r *Request) user() user.Info {
	if r.User == nil {
		return administrator
	}
	return r.User
}

// Attributes returns a request as an authorizer sees it.
func (r *Request) Attributes() authorizer.Attributes {
	a := authorizer.AttributesRecord{User: r.user(), Path: r.Path, Verb: strings.ToLower(r.Method)}
	if r.Verb == "" {
		return a
	}
	a.ResourceRequest = true
	a.Verb, a.Namespace, a.Name = r.Verb, r.Namespace, r.Name
	a.APIGroup, a.APIVersion, a.Resource = r.Resource.Group, r.Resource.Version, r.Resource.Resource
	a.Subresource, _, _ = strings.Cut(r.Subresource, "/")
	if r.Resource == namespacesResource && r.Name != "" {
		a.Namespace = r.Name // as upstream, so that a Role in a namespace can cover the namespace itself
	}
	if r.Name == "" && (r.Verb == "list" || r.Verb == "watch") {
		a.Name = r.selectedName()
	}
	return a
}

// selectedName returns the name that the field selector of a list or watch asks for. As upstream, a
// rule with resourceNames covers such a request.
func (r *Request) selectedName() string {
	selector, err := fields.ParseSelector(r.Query.Get("fieldSelector"))
	if err != nil {
		return "" // the answer will be that
	}
	name, _ := selector.RequiresExactMatch("metadata.name")
	return name
}

var namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// authorize returns the answer 403 if the user of a request may not make it.
func (s *Server) authorize(r *Request) *failure {
	if s.authorizer == nil || r.User == nil {
		return nil
	}
	return s.registry.check(r.Attributes())
}

// authorizeCreate returns the answer 403 if an update or an apply would create an object that its
// user may not create.
func (g *registry) authorizeCreate(w *writeContext) *failure {
	if g.authorizer == nil || w.request.User == nil || w.request.Verb == "create" {
		return nil
	}
	r := *w.request
	r.Verb = "create"
	return g.check(r.Attributes())
}

// check returns the answer 403 if the authorizer does not allow what it is asked.
func (g *registry) check(a authorizer.Attributes) *failure {
	decision, reason, err := g.authorizer.Authorize(context.Background(), a)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil:
		return fail(apierrors.NewInternalError(err))
	}
	if g.refused != nil {
		g.refused(a)
	}
	text := refusal(a)
	if reason != "" {
		text += ": " + reason
	}
	gr := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	return fail(apierrors.NewForbidden(gr, a.GetName(), errors.New(text)))
}

// refusal says what a user may not do, in the words of the real server.
func refusal(a authorizer.Attributes) string {
	if !a.IsResourceRequest() {
		return fmt.Sprintf("User %q cannot %s path %q", a.GetUser().GetName(), a.GetVerb(), a.GetPath())
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	scope := "at the cluster scope"
	if a.GetNamespace() != "" {
		scope = fmt.Sprintf("in the namespace %q", a.GetNamespace())
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", a.GetUser().GetName(), a.GetVerb(), resource, a.GetAPIGroup(), scope)
}
