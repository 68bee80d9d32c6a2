// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// An object that a person has written is served as if it had been created: with the data of a
// Secret and the defaults of its kind. Nothing that it has is changed.
func TestImportedObjectsHaveDefaults(t *testing.T) {
	metadata := map[string]any{"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": int64(3)}
	for path, test := range map[string]struct{ imported, want map[string]any }{
		"/api/v1/namespaces/default/secrets/a": {
			map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"password": "hello"}, "data": map[string]any{"user": "YQ=="}},
			map[string]any{"type": "Opaque", "data": map[string]any{"password": "aGVsbG8=", "user": "YQ=="}},
		},
		"/api/v1/namespaces/default/services/a": {
			map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"clusterIP": "10.0.0.9", "sessionAffinity": "ClientIP"}, "status": map[string]any{"of": "the source"}},
			map[string]any{"status": map[string]any{"of": "the source"}, "spec": map[string]any{
				"clusterIP": "10.0.0.9", "sessionAffinity": "ClientIP", "sessionAffinityConfig": map[string]any{"clientIP": map[string]any{"timeoutSeconds": 10800.0}},
				"type": "ClusterIP", "internalTrafficPolicy": "Cluster",
			}},
		},
	} {
		server := apiserver.New(apiserver.Options{})
		test.imported["metadata"] = metadata
		must(t, server.Import(test.imported))
		code, got := world{t, server}.do("GET", path, "")
		want := map[string]any{"apiVersion": got["apiVersion"], "kind": test.imported["kind"], "metadata": map[string]any{
			"name": "a", "namespace": "default", "uid": "u", "resourceVersion": "7", "generation": 3.0,
		}}
		for field, value := range test.want {
			want[field] = value
		}
		if diff := cmp.Diff(want, got); code != 200 || diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
}

// A definition that leaves out what the server defaults is served.
func TestImportedDefinitionHasDefaults(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	must(t, server.Import(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "shops.example.com", "uid": "u", "resourceVersion": "7"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced", "names": map[string]any{"kind": "Shop", "plural": "shops"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}))
	code, list := world{t, server}.do("GET", "/apis/example.com/v1/shops", "")
	if code != 200 || list["kind"] != "ShopList" {
		t.Errorf("got %d and %v", code, list)
	}
}
