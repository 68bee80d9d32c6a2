// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

// kubernetesVersion is the version of Kubernetes that the server imitates.
const kubernetesVersion = "v1.37.2-sim"

// serveDiscovery answers requests that are not about objects: discovery, version and health.
// Clients discover anew whenever they start, so that the answers are encoded once.
func (c *catalog) serveDiscovery(r *Request) *Response {
	if known, ok := c.answers.Load(r.Path + " " + r.Accept); ok && r.Method == http.MethodGet && !r.wantsAggregated() {
		return respond(http.StatusOK, known.([]byte))
	}
	response := c.discover(r)
	if r.Method == http.MethodGet && response.Code == http.StatusOK && response.Header.Get("Content-Type") == "application/json" {
		c.answers.Store(r.Path+" "+r.Accept, response.Body)
	}
	return response
}

func (c *catalog) discover(r *Request) *Response {
	path := strings.TrimSuffix(r.Path, "/")
	switch {
	case r.Method != http.MethodGet:
		return notFoundPath().response()
	case r.wantsAggregated() && (path == "/api" || path == "/apis"):
		return c.serveAggregated(path)
	case path == openAPIPath || strings.HasPrefix(path, openAPIPath+"/"):
		return c.serveOpenAPI(path)
	case path == "/version":
		return respond(http.StatusOK, []byte(`{"major":"1","minor":"36","gitVersion":"`+kubernetesVersion+`","platform":"memory"}`))
	case path == "/healthz" || path == "/livez" || path == "/readyz":
		return &Response{Code: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Body: []byte("ok")}
	case path == "/api":
		return respond(http.StatusOK, encode(map[string]any{"kind": "APIVersions", "versions": []any{"v1"}, "serverAddressByClientCIDRs": []any{}}))
	case path == "/apis":
		return respond(http.StatusOK, encode(map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": c.groups()}))
	case path == "/api/v1":
		return c.resourceList(schema.GroupVersion{Version: "v1"})
	}
	parts := strings.Split(strings.TrimPrefix(path, "/apis/"), "/")
	switch {
	case !strings.HasPrefix(path, "/apis/"):
		return notFoundPath().response()
	case len(parts) == 1:
		for _, g := range c.groups() {
			if group := g.(map[string]any); group["name"] == parts[0] {
				group["kind"], group["apiVersion"] = "APIGroup", "v1"
				return respond(http.StatusOK, encode(group))
			}
		}
	case len(parts) == 2:
		return c.resourceList(schema.GroupVersion{Group: parts[0], Version: parts[1]})
	}
	return notFoundPath().response()
}

// groups returns the served API groups, ordered by name. The newest version of each is the
// preferred one.
func (c *catalog) groups() []any {
	versions := map[string][]string{}
	for _, k := range c.all() {
		if k.gvr.Group != "" && !slices.Contains(versions[k.gvr.Group], k.gvr.Version) {
			versions[k.gvr.Group] = append(versions[k.gvr.Group], k.gvr.Version)
		}
	}
	var groups []any
	for _, name := range sortedKeys(versions) {
		list := versions[name]
		slices.SortFunc(list, func(a, b string) int { return -compareVersionNames(a, b) })
		var all []any
		for _, v := range list {
			all = append(all, groupVersion(name, v))
		}
		groups = append(groups, map[string]any{"name": name, "versions": all, "preferredVersion": groupVersion(name, list[0])})
	}
	return groups
}

func groupVersion(group, version string) map[string]any {
	return map[string]any{"groupVersion": group + "/" + version, "version": version}
}

func (c *catalog) resourceList(gv schema.GroupVersion) *Response {
	var list []any
	for _, k := range c.all() {
		if k.gvr.GroupVersion() == gv {
			list = append(list, k.describe()...)
		}
	}
	if list == nil {
		return notFoundPath().response()
	}
	return respond(http.StatusOK, encode(map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv.String(), "resources": list}))
}

// describe returns the entries of a resource and its subresources in discovery.
func (k *kind) describe() []any {
	main := map[string]any{
		"name": k.gvr.Resource, "singularName": k.singular, "namespaced": k.namespaced, "kind": k.gvk.Kind, "verbs": k.verbs,
	}
	if len(k.shortNames) > 0 {
		main["shortNames"] = k.shortNames
	}
	if len(k.categories) > 0 {
		main["categories"] = k.categories
	}
	list := []any{main}
	for _, s := range k.served() {
		list = append(list, s.describe(k))
	}
	return list
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// compareVersionNames orders versions as upstream does: v1alpha1 < v1beta1 < v1 < v2.
func compareVersionNames(a, b string) int { return kubeversion.CompareKubeAwareVersionStrings(a, b) }
