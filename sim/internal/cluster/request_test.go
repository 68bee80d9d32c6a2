// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	backups    = "/apis/demo.example.com/v1/namespaces/default/backups"
)

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
	const apply, events, leases = "application/apply-patch+yaml", "events", "leases"
	tests := map[string]struct {
		method, path, contentType, body string
		text, target                    string
		counts                          string // as a write or a read
	}{
		"create": {
			"POST", configMaps, "", `{"metadata":{"name":"x"}}`, "create configmaps default/x", "configmaps default/x", "write",
		},
		"create with a generated name": {
			"POST", configMaps, "", `{"metadata":{"generateName":"x-"}}`, "create configmaps default/x-*", "configmaps default/x-*", "write",
		},
		"create with both": {
			"POST", configMaps, "", `{"metadata":{"name":"x","generateName":"y-"}}`, "create configmaps default/x", "configmaps default/x", "write",
		},
		"create of nonsense": {"POST", configMaps, "", `[`, "create configmaps in default", "configmaps default/", "write"},
		"create in a group": {
			"POST", backups, "", `{"metadata":{"name":"x"}}`, "create backups.demo.example.com default/x", "backups.demo.example.com default/x", "write",
		},
		"create without a namespace": {
			"POST", "/api/v1/namespaces", "", `{"metadata":{"name":"n"}}`, "create namespaces n", "namespaces /n", "write",
		},
		"dry run": {
			"POST", configMaps + "?dryRun=All", "", `{"metadata":{"name":"x"}}`, "create configmaps default/x", "configmaps default/x", "",
		},
		"update": {"PUT", configMaps + "/x", "", `{"metadata":{"name":"y"}}`, "update configmaps default/x", "configmaps default/x", "write"},
		"patch":  {"PATCH", configMaps + "/x", "application/merge-patch+json", `{}`, "patch configmaps default/x", "configmaps default/x", "write"},
		"apply":  {"PATCH", configMaps + "/x", apply, `{}`, "apply configmaps default/x", "configmaps default/x", "write"},
		"status": {
			"PUT", backups + "/x/status", "", `{}`, "update backups.demo.example.com default/x status", "backups.demo.example.com default/x", "write",
		},
		"delete":           {"DELETE", configMaps + "/x", "", "", "delete configmaps default/x", "configmaps default/x", "write"},
		"deletecollection": {"DELETE", configMaps, "", "", "deletecollection configmaps in default", "configmaps default/", "write"},
		"get":              {"GET", configMaps + "/x", "", "", "get configmaps default/x", "configmaps default/x", "read"},
		"list":             {"GET", configMaps, "", "", "list configmaps in default", "configmaps default/", "read"},
		"list all":         {"GET", "/api/v1/configmaps", "", "", "list configmaps", "configmaps /", "read"},
		"watch":            {"GET", configMaps + "?watch=true", "", "", "watch configmaps in default", "configmaps default/", ""},
		"discovery":        {"GET", "/api/v1", "", "", "GET /api/v1", " /", ""},
		"an old event": {
			"POST", "/api/v1/namespaces/default/" + events, "", `{"metadata":{"name":"e"}}`, "create events default/e", "events default/e", "",
		},
		"a new event": {
			"POST", "/apis/events.k8s.io/v1/namespaces/default/" + events, "", `{"metadata":{"name":"e"}}`,
			"create events.events.k8s.io default/e", "events.events.k8s.io default/e", "",
		},
		"another kind of that name": {
			"POST", "/apis/demo.example.com/v1/namespaces/default/" + events, "", `{"metadata":{"name":"e"}}`,
			"create events.demo.example.com default/e", "events.demo.example.com default/e", "write",
		},
		"reading a lease": {
			"GET", "/apis/coordination.k8s.io/v1/namespaces/default/" + leases + "/l", "", "",
			"get leases.coordination.k8s.io default/l", "leases.coordination.k8s.io default/l", "",
		},
		"writing a lease": {
			"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/" + leases + "/l", "", "",
			"update leases.coordination.k8s.io default/l", "leases.coordination.k8s.io default/l", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := request(t, test.method, test.path, test.contentType, test.body)
			equal(t, "text", test.text, Describe(r))
			equal(t, "target", test.target, TargetOf(r))
			counts := ""
			switch {
			case IsWrite(r) && IsRead(r):
				counts = "both"
			case IsWrite(r):
				counts = "write"
			case IsRead(r):
				counts = "read"
			}
			equal(t, "counts", test.counts, counts)
			equal(t, "apply", name == "apply", IsApply(r))
		})
	}
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
