// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"slices"
	"strings"
)

// aggregatedType is the form of discovery in which one answer describes all groups.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether a request asks for aggregated discovery. Only those that come over
// the network get it: clients within the process, above all the many of a simulation, are faster if
// they ask for the few groups that they use.
func (r *Request) wantsAggregated() bool {
	return r.remote && r.Method == http.MethodGet && strings.Contains(strings.ReplaceAll(r.Accept, " ", ""), aggregatedType)
}

// serveAggregated answers a request for all groups ("/apis"), or for the one without a name ("/api").
// As upstream, the built-in groups come first, so that clients prefer their kinds for short names.
func (c *catalog) serveAggregated(path string) *Response {
	custom, groups := map[string]bool{}, map[string][]*kind{}
	for _, k := range c.all() {
		if (path == "/api") == (k.gvr.Group == "") {
			groups[k.gvr.Group] = append(groups[k.gvr.Group], k)
			custom[k.gvr.Group] = k.definition != nil
		}
	}
	names := sortedKeys(groups)
	slices.SortStableFunc(names, func(a, b string) int {
		switch {
		case custom[a] == custom[b]:
			return 0
		case custom[b]:
			return -1
		}
		return 1
	})
	var items []any
	for _, name := range names {
		items = append(items, map[string]any{
			"metadata": map[string]any{"name": name, "creationTimestamp": nil}, "versions": aggregateVersions(groups[name]),
		})
	}
	response := respond(http.StatusOK, encode(map[string]any{
		"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items,
	}))
	response.Header.Set("Content-Type", aggregatedType)
	return response
}

// aggregateVersions describes the kinds of a group by their versions, the preferred one first.
func aggregateVersions(kinds []*kind) []any {
	versions := map[string][]any{}
	for _, k := range kinds {
		versions[k.gvr.Version] = append(versions[k.gvr.Version], k.aggregate())
	}
	names := sortedKeys(versions)
	slices.SortFunc(names, func(a, b string) int { return -compareVersionNames(a, b) })
	var list []any
	for _, name := range names {
		list = append(list, map[string]any{"version": name, "resources": versions[name], "freshness": "Current"})
	}
	return list
}

// aggregate describes a resource with its subresources.
func (k *kind) aggregate() map[string]any {
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	out := map[string]any{
		"resource": k.gvr.Resource, "responseKind": map[string]any{"group": k.gvk.Group, "version": k.gvk.Version, "kind": k.gvk.Kind},
		"scope": scope, "singularResource": k.singular, "verbs": k.verbs,
	}
	if len(k.shortNames) > 0 {
		out["shortNames"] = k.shortNames
	}
	if len(k.categories) > 0 {
		out["categories"] = k.categories
	}
	var subresources []any
	for _, entry := range k.describe()[1:] {
		sub := entry.(map[string]any)
		_, name, _ := strings.Cut(sub["name"].(string), "/")
		kind := map[string]any{"group": k.gvk.Group, "version": k.gvk.Version, "kind": sub["kind"]}
		if group, ok := sub["group"]; ok {
			kind["group"], kind["version"] = group, sub["version"]
		}
		subresources = append(subresources, map[string]any{"subresource": name, "responseKind": kind, "verbs": sub["verbs"]})
	}
	if subresources != nil {
		out["subresources"] = subresources
	}
	return out
}
