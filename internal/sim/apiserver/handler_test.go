// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// asTable is the header Accept of "kubectl get".
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"

// remote is a server that serves over HTTP.
type remote struct {
	*httptest.Server
	t *testing.T
}

func serve(t *testing.T, server *apiserver.Server) remote {
	t.Helper()
	r := remote{httptest.NewServer(server.Handler(nil)), t}
	t.Cleanup(r.Close)
	return r
}

// send sends a request and returns the answer, whose body the test closes.
func (r remote) send(method, path, accept, body string) *http.Response {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, strings.NewReader(body))
	must(r.t, err)
	request.Header.Set("Accept", accept)
	request.Header.Set("Content-Type", "application/json")
	response, err := r.Client().Do(request)
	must(r.t, err)
	r.t.Cleanup(func() { _ = response.Body.Close() }) // nothing was written
	return response
}

func (r remote) read(response *http.Response) string {
	r.t.Helper()
	data, err := io.ReadAll(response.Body)
	must(r.t, err)
	return string(data)
}

func (r remote) create(path, body string) {
	r.t.Helper()
	if response := r.send("POST", path, "application/json", body); response.StatusCode != http.StatusCreated {
		r.t.Fatalf("POST %s: %s", path, r.read(response))
	}
}

// table is what a test looks at of a Table.
type table struct {
	Kind              string
	Metadata          struct{ ResourceVersion string }
	ColumnDefinitions []struct {
		Name     string
		Priority int
	}
	Rows []struct {
		Cells  []any
		Object struct {
			Kind     string
			Metadata struct{ Name string }
			Spec     map[string]any
		}
	}
}

func (t table) columns() []string {
	var names []string
	for _, c := range t.ColumnDefinitions {
		name := c.Name
		if c.Priority > 0 {
			name += "*"
		}
		names = append(names, name)
	}
	return names
}

func (r remote) table(path string) table {
	r.t.Helper()
	var out table
	body := r.read(r.send("GET", path, asTable, ""))
	if err := json.Unmarshal([]byte(body), &out); err != nil || out.Kind != "Table" {
		r.t.Fatalf("GET %s is answered with no Table: %s", path, body)
	}
	return out
}

const (
	pods        = "/api/v1/namespaces/default/pods"
	deployments = "/apis/apps/v1/namespaces/default/deployments"
)

// Each kind has a table, whatever its columns are, and as many cells as columns.
func TestEveryKindHasATable(t *testing.T) {
	server := apiserver.New(apiserver.Options{})
	r := serve(t, server)
	groups, err := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: r.URL}).ServerPreferredResources()
	must(t, err)
	kinds := 0
	for _, group := range groups {
		gv, err := schema.ParseGroupVersion(group.GroupVersion)
		must(t, err)
		for _, resource := range group.APIResources {
			if !slices.Contains([]string(resource.Verbs), "list") {
				continue
			}
			root := "/apis/" + gv.String()
			if gv.Group == "" {
				root = "/api/v1"
			}
			if columns := r.table(root + "/" + resource.Name).columns(); !slices.Contains(columns, "Name") && !slices.Contains(columns, "Name*") {
				t.Errorf("%s: the columns are %q", resource.Name, columns)
			}
			kinds++
		}
	}
	if kinds < 40 {
		t.Errorf("discovery lists %d kinds", kinds)
	}
}

// A watch sends a table for each event. Only the first one says what the columns are.
func TestWatchOfTables(t *testing.T) {
	r := serve(t, apiserver.New(apiserver.Options{}))
	before := r.table(pods)
	response := r.send("GET", pods+"?watch=true&resourceVersion="+before.Metadata.ResourceVersion, asTable, "")
	events := bufio.NewReader(response.Body)
	for i, name := range []string{"a", "b"} {
		r.create(pods, `{"metadata":{"name":"`+name+`"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}`)
		line, err := events.ReadString('\n')
		must(t, err)
		var event struct {
			Type   string
			Object table
		}
		must(t, json.Unmarshal([]byte(line), &event))
		if event.Type != "ADDED" || event.Object.Kind != "Table" || event.Object.Rows[0].Cells[0] != name {
			t.Errorf("event %d is %s", i, line)
		}
		if has := len(event.Object.ColumnDefinitions) > 0; has != (i == 0) {
			t.Errorf("event %d: columns are defined: %v", i, has)
		}
	}
}

func TestAggregatedDiscovery(t *testing.T) {
	r := serve(t, newWidgets(t))
	_, lists, failed, err := discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: r.URL}).GroupsAndMaybeResources()
	if err != nil || len(failed) > 0 {
		t.Fatal(err, failed)
	}
	if lists == nil {
		t.Fatal("discovery is not aggregated")
	}
	widgets := lists[schema.GroupVersion{Group: "example.com", Version: "v1"}]
	if widgets == nil || len(widgets.APIResources) != 2 || widgets.APIResources[0].Kind != "Widget" || widgets.APIResources[1].Name != "widgets/status" {
		t.Errorf("widgets are described as %+v", widgets)
	}
	// Short names mean built-in kinds before custom ones.
	body := r.read(r.send("GET", "/apis", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""))
	if strings.Index(body, `"example.com"`) < strings.Index(body, `"storage.k8s.io"`) {
		t.Error("a custom group comes before a built-in one")
	}
}

// The documents of OpenAPI describe kinds to "kubectl explain", and tell "kubectl apply" that the server
// validates.
func TestOpenAPI(t *testing.T) {
	r := serve(t, newWidgets(t))
	root := openapi3.NewRoot(discovery.NewDiscoveryClientForConfigOrDie(&rest.Config{Host: r.URL}).OpenAPIV3())
	versions, err := root.GroupVersions()
	must(t, err)
	for _, gv := range versions {
		document, err := root.GVSpec(gv)
		if err != nil {
			t.Errorf("%s: %v", gv, err)
			continue
		}
		for name, s := range document.Components.Schemas {
			for property, of := range s.Properties {
				if len(of.AllOf) > 0 {
					of = of.AllOf[0]
				}
				if ref := of.Ref.String(); ref != "" && document.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")] == nil {
					t.Errorf("%s: %s.%s refers to %s, which is missing", gv, name, property, ref)
				}
			}
		}
	}
	document, err := root.GVSpec(schema.GroupVersion{Group: "example.com", Version: "v1"})
	must(t, err)
	patch := document.Paths.Paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"].Patch
	if patch == nil || !slices.ContainsFunc(patch.Parameters, hasName("fieldValidation")) {
		t.Errorf("nothing says that the server validates fields: %+v", patch)
	}
	if s := document.Components.Schemas["com.example.v1.Widget"]; s == nil || s.Properties["spec"].Properties["size"].Type[0] != "integer" {
		t.Errorf("the schema of Widgets is %+v", s)
	}
}

func hasName(name string) func(*spec3.Parameter) bool {
	return func(p *spec3.Parameter) bool { return p.Name == name }
}
