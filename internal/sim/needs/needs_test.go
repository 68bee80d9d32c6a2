// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package needs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/needs"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// send records a request of the operator.
func send(t *testing.T, l *needs.Log, method, path string) {
	t.Helper()
	r, err := apiserver.NewRequest(method, path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Actor = "operator"
	l.Sent(r)
}

// resources knows Websites and Nodes.
func resources(gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	switch gvk.Kind {
	case "Website":
		return schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: "websites"}, true, nil
	case "Node":
		return schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false, nil
	}
	return schema.GroupVersionResource{}, false, errors.New("unknown")
}

// texts returns what was recorded, with the objects.
func texts(l *needs.Log) []string {
	var list []string
	for _, n := range l.Needs(resources) {
		text := n.String()
		for _, target := range n.Targets {
			text += " " + target.Namespace + "/" + target.Name
		}
		list = append(list, text)
	}
	return list
}

func owned(references ...any) map[string]any {
	return map[string]any{"metadata": map[string]any{"ownerReferences": references}}
}

func reference(version, kind string, block bool) map[string]any {
	return map[string]any{"apiVersion": version, "kind": kind, "name": "x", "blockOwnerDeletion": block}
}

func TestRequests(t *testing.T) {
	l := needs.New()
	send(t, l, "GET", "/apis/apps/v1/namespaces/default/deployments/x")
	send(t, l, "GET", "/apis/apps/v1/deployments?watch=true")
	send(t, l, "PATCH", "/apis/apps/v1/namespaces/default/deployments/x/status")
	send(t, l, "GET", "/api/v1/namespaces/default/secrets?watch=true&fieldSelector=metadata.name%3Ds")
	send(t, l, "POST", "/api/v1/namespaces/default/configmaps")
	send(t, l, "GET", "/metrics")
	for _, path := range []string{"/api", "/apis/apps/v1", "/openapi/v3", "/version", "/livez"} { // everyone may
		send(t, l, "GET", path)
	}
	send(t, l, "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
	want := []string{
		"get /metrics /", "create configmaps default/", "watch secrets default/s", "get deployments.apps default/x", "watch deployments.apps /", "patch deployments.apps/status default/x",
	}
	if diff := cmp.Diff(want, texts(l)); diff != "" {
		t.Error(diff)
	}
	for _, n := range l.Needs(resources) {
		if len(n.By) != 1 || !strings.HasPrefix(n.By[0], "internal/sim/needs/needs_test.go:") {
			t.Errorf("%s was asked by %q, want a line of this test", n, n.By)
		}
	}
}

// What a write implies is needed, too.
func TestEffects(t *testing.T) {
	created := apiserver.Change{Type: "ADDED", Resource: configMaps, Namespace: "default", Name: "a", Actor: "operator", Verb: "create"}
	patched := created
	patched.Verb = "patch"
	adopted := apiserver.Change{Type: "MODIFIED", Resource: configMaps, Namespace: "default", Name: "a", Actor: "operator", Verb: "patch"}
	with := func(c apiserver.Change, before, now map[string]any) apiserver.Change {
		c.Old, c.New = before, now
		return c
	}
	blocked, free := owned(reference("web.example.com/v1", "Website", true)), owned(reference("web.example.com/v1", "Website", false))
	others := created
	others.Actor = "user"
	for name, test := range map[string]struct {
		change apiserver.Change
		want   []string
	}{
		"created":                        {with(created, nil, owned()), nil},
		"created by a patch":             {with(patched, nil, owned()), []string{"create configmaps default/"}},
		"created, and blocks":            {with(created, nil, blocked), []string{"update websites.web.example.com/finalizers default/x"}},
		"created, and does not block":    {with(created, nil, free), nil},
		"adopted":                        {with(adopted, free, blocked), []string{"delete configmaps default/a", "update websites.web.example.com/finalizers default/x"}},
		"patched, and has blocked":       {with(adopted, blocked, blocked), nil},
		"blocks a cluster-scoped object": {with(created, nil, owned(reference("v1", "Node", true))), []string{"update nodes/finalizers /x"}},
		"blocks an unknown kind":         {with(created, nil, owned(reference("v1", "Other", true))), nil},
		"of others":                      {with(others, nil, blocked), nil},
		"deleted":                        {with(adopted, blocked, nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := needs.New()
			send(t, l, "GET", "/api/v1/namespaces/default/secrets/s") // the operator is known by its requests
			l.Changed(test.change)
			got := slices.DeleteFunc(texts(l), func(text string) bool { return text == "get secrets default/s" })
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
