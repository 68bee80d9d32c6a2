// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

const configMaps = "/api/v1/namespaces/default/configmaps"

func request(t *testing.T, method, path, contentType, body string) *apiserver.Request {
	t.Helper()
	r, err := apiserver.NewRequest(method, path, contentType, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// How each request reads in the trace, which object it is about, and whether it counts.
func TestRequests(t *testing.T) {
	var b strings.Builder
	for _, text := range []string{
		`POST configmaps {"metadata":{"name":"x"}}`, `POST configmaps {"metadata":{"generateName":"x-"}}`,
		`POST configmaps {"metadata":{"name":"x","generateName":"y-"}}`, `POST configmaps [`,
		`POST /apis/demo.example.com/v1/namespaces/default/backups {"metadata":{"name":"x"}}`, `POST /api/v1/namespaces {"metadata":{"name":"n"}}`,
		`POST configmaps?dryRun=All {"metadata":{"name":"x"}}`, `PUT configmaps/x {"metadata":{"name":"y"}}`, `PATCH configmaps/x {}`, `APPLY configmaps/x {}`,
		`PUT /apis/demo.example.com/v1/namespaces/default/backups/x/status {}`, `DELETE configmaps/x`, `DELETE configmaps`,
		`GET configmaps/x`, `GET configmaps`, `GET /api/v1/configmaps`, `GET configmaps?watch=true`, `GET /api/v1`,
		`POST events {"metadata":{"name":"e"}}`, `POST /apis/events.k8s.io/v1/namespaces/default/events {"metadata":{"name":"e"}}`,
		`POST /apis/demo.example.com/v1/namespaces/default/events {"metadata":{"name":"e"}}`,
		`GET /apis/coordination.k8s.io/v1/namespaces/default/leases/l`, `PUT /apis/coordination.k8s.io/v1/namespaces/default/leases/l {}`,
	} {
		parts := append(strings.SplitN(text, " ", 3), "")
		method, path, contentType := parts[0], parts[1], ""
		if !strings.HasPrefix(path, "/") {
			path = "/api/v1/namespaces/default/" + path
		}
		if method == "APPLY" {
			method, contentType = "PATCH", "application/apply-patch+yaml"
		}
		r := request(t, method, path, contentType, parts[2])
		fmt.Fprintf(&b, "%s\n    %s\n    about %s\n", text, Describe(r), TargetOf(r))
		for _, is := range []struct {
			what string
			is   bool
		}{{"a write", IsWrite(r)}, {"a read", IsRead(r)}, {"an apply", IsApply(r)}} {
			if is.is {
				fmt.Fprintf(&b, "    is %s\n", is.what)
			}
		}
	}
	golden.Compare(t, "requests.txt", b.String())
}

// The object that a request creates has the name and the namespace of the request. What changes an
// object that must be there creates none.
func TestCreatedBy(t *testing.T) {
	const configMap, named = "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"}}`
	tests := map[string]struct {
		method, path, contentType, body string
		want                            string // "" for none
	}{
		"a creation":                       {"POST", configMap, "", named, "default/x"},
		"a creation outside of namespaces": {"POST", "/api/v1/namespaces", "", named, "/x"},
		"an apply":                         {"PATCH", configMap + "/x", "application/apply-patch+yaml", "metadata: {labels: {a: b}}", "default/x"},
		"a patch":                          {"PATCH", configMap + "/x", "application/merge-patch+json", named, ""},
		"an apply of the status":           {"PATCH", configMap + "/x/status", "application/apply-patch+yaml", named, ""},
		"an update":                        {"PUT", configMap + "/x", "", named, ""},
		"not an object":                    {"POST", configMap, "", `[]`, ""},
		"no metadata":                      {"POST", configMap, "", `{}`, ""},
	}
	for name, test := range tests {
		obj, ok := CreatedBy(request(t, test.method, test.path, test.contentType, test.body))
		got := ""
		if ok {
			got = obj.GetNamespace() + "/" + obj.GetName()
		}
		equal(t, name, test.want, got)
	}
}

func TestIsOwned(t *testing.T) {
	for body, want := range map[string]bool{
		`{"metadata":{"name":"x"}}`:                                             false,
		`{"metadata":{"name":"x","ownerReferences":[{"uid":"abc"}]}}`:           true,
		`{"metadata":{"generateName":"x-","ownerReferences":[{"uid":"abc"}]}}`:  true,
		`{"metadata":{"name":"x-abc","ownerReferences":[{"uid":"abc"}]}}`:       false,
		`{"metadata":{"generateName":"abc","ownerReferences":[{"uid":"abc"}]}}`: false,
	} {
		obj, ok := CreatedBy(request(t, "POST", "/api/v1/namespaces/default/configmaps", "", body))
		equal(t, body, []bool{true, want}, []bool{ok, IsOwned(obj)})
	}
}

func TestNames(t *testing.T) {
	generated := func(prefix string) map[string]any {
		return map[string]any{"metadata": map[string]any{"generateName": prefix}}
	}
	equal(t, "a generated name", "x-*", CanonicalName("x-7fj2k", generated("x-")))
	equal(t, "a name of another prefix", "y-7fj2k", CanonicalName("y-7fj2k", generated("x-")))
	equal(t, "a name with an empty prefix", "x", CanonicalName("x", generated("")))
	equal(t, "a chosen name", "x", CanonicalName("x", map[string]any{}))
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	equal(t, "a name with a group", "jobs.batch default/x", ObjectName(jobs, "default", "x"))
	equal(t, "a path with a group", "/apis/batch/v1/namespaces/default/jobs", CollectionPath(jobs, "default"))
	equal(t, "a path without a group", "/api/v1/secrets", CollectionPath(secrets, ""))
	equal(t, "secrets", []bool{true, false}, []bool{
		IsSecret(secrets), IsSecret(schema.GroupVersionResource{Group: "demo.example.com", Version: "v1", Resource: "secrets"}),
	})
	equal(t, "operators", []bool{true, true, false, false}, []bool{
		IsOperator("operator"), IsOperator("operator-2"), IsOperator("user"), IsOperator("other"),
	})
}
