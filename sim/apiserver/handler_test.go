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

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
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

func TestTablesOfBuiltinKinds(t *testing.T) {
	r := serve(t, apiserver.New(apiserver.Options{}))
	template := `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"nginx"},{"name":"d","image":"envoy"}]}}`
	r.create(pods, `{"metadata":{"name":"web"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}`)
	r.create(deployments, `{"metadata":{"name":"web"},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},"template":`+template+`}}`)
	for _, test := range []struct {
		path    string
		columns []string
		cells   []any
	}{
		{
			pods, []string{"Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"},
			[]any{"web", "0/1", "Pending", "0", "AGE", "<none>", "<none>", "<none>", "<none>"},
		},
		{
			deployments + "/web", []string{"Name", "Ready", "Up-to-date", "Available", "Age", "Containers*", "Images*", "Selector*"},
			[]any{"web", "0/3", 0.0, 0.0, "AGE", "c,d", "nginx,envoy", "app=web"},
		},
		{"/api/v1/namespaces/default", []string{"Name", "Status", "Age"}, []any{"default", "Active", "AGE"}},
	} {
		got := r.table(test.path)
		if diff := cmp.Diff(test.columns, got.columns()); diff != "" {
			t.Errorf("the columns of %s:\n%s", test.path, diff)
		}
		if len(got.Rows) != 1 {
			t.Fatalf("%s has %d rows, want 1", test.path, len(got.Rows))
		}
		cells := got.Rows[0].Cells
		if age := slices.Index(got.columns(), "Age"); age >= 0 {
			cells[age] = "AGE"
		}
		if diff := cmp.Diff(test.cells, cells); diff != "" {
			t.Errorf("the cells of %s:\n%s", test.path, diff)
		}
		if object := got.Rows[0].Object; object.Kind != "PartialObjectMetadata" || object.Metadata.Name != cells[0] {
			t.Errorf("the row of %s has the object %+v", test.path, object)
		}
	}
	if all := r.table(pods + "?includeObject=Object"); all.Rows[0].Object.Kind != "Pod" || all.Rows[0].Object.Spec["containers"] == nil {
		t.Errorf("the row does not have the Pod that was asked for: %+v", all.Rows[0].Object)
	}
	if response := r.send("GET", pods+"?includeObject=Spec", asTable, ""); response.StatusCode != http.StatusBadRequest {
		t.Errorf("a request for what a row can't have is answered with %d, want 400", response.StatusCode)
	}
}

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

func TestTablesOfCustomResources(t *testing.T) {
	server := newWidgetServer(t)
	r := serve(t, server)
	r.create("/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":3}}`)
	got := r.table("/apis/example.com/v1/widgets")
	if diff := cmp.Diff([]string{"Name", "Size", "Phase*", "Age"}, got.columns()); diff != "" {
		t.Error(diff)
	}
	if cells := got.Rows[0].Cells; len(cells) != 4 || cells[0] != "x" || cells[1] != 3.0 || cells[2] != nil {
		t.Errorf("the cells are %v", cells)
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

// What is asked for as a table and has none, and what goes wrong, stays a Status.
func TestNoTablesOfStatuses(t *testing.T) {
	r := serve(t, apiserver.New(apiserver.Options{}))
	for _, test := range []struct{ method, path string }{{"GET", pods + "/missing"}, {"DELETE", "/api/v1/namespaces/default/configmaps/missing"}} {
		if body := r.read(r.send(test.method, test.path, asTable, "")); !strings.Contains(body, `"kind":"Status"`) {
			t.Errorf("%s %s is answered with %s", test.method, test.path, body)
		}
	}
}

func TestAggregatedDiscovery(t *testing.T) {
	r := serve(t, newWidgetServer(t))
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
	r := serve(t, newWidgetServer(t))
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

// newWidgetServer returns a server with the kind Widget, with printer columns and a status.
func newWidgetServer(t *testing.T) *apiserver.Server {
	t.Helper()
	d := widgetDefinition(nil)
	v := &d.Spec.Versions[0]
	v.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	v.AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{
		{Name: "Size", Type: "integer", JSONPath: ".spec.size"},
		{Name: "Phase", Type: "string", JSONPath: ".status.phase", Priority: 1},
		{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
	}
	server := apiserver.New(apiserver.Options{})
	must(t, server.Install(d))
	return server
}

// A Kubernetes event is the same object in both of its groups, where its fields have different names.
func TestEventsInBothGroups(t *testing.T) {
	const core, events = "/api/v1/namespaces/default/events", "/apis/events.k8s.io/v1/namespaces/default/events"
	r := serve(t, apiserver.New(apiserver.Options{}))
	r.create(events, `{"metadata":{"name":"new","namespace":"default"},"eventTime":"2030-01-01T00:00:00.000000Z","reportingController":"c","reportingInstance":"i",
		"action":"a","reason":"R","type":"Normal","note":"hello","regarding":{"kind":"Pod","namespace":"default","name":"x"}}`)
	r.create(core, `{"metadata":{"name":"old","namespace":"default"},"involvedObject":{"kind":"Pod","namespace":"default","name":"x"},"reason":"R","type":"Normal","message":"hello"}`)
	for path, want := range map[string][]string{
		core + "?fieldSelector=involvedObject.name=x": {`"involvedObject":{"kind":"Pod"`, `"message":"hello"`},
		core + "?fieldSelector=involvedObject.name=y": nil,
		core + "/new":   {`"involvedObject":{`, `"message":"hello"`, `"reportingComponent":"c"`},
		events + "/old": {`"regarding":{`, `"note":"hello"`},
		events:          {`"regarding":{`, `"note":"hello"`},
		core + "/old":   {`"involvedObject":{`, `"message":"hello"`},
	} {
		body := r.read(r.send("GET", path, "application/json", ""))
		for _, text := range want {
			if strings.Count(body, text) != max(1, strings.Count(body, `"name":"new"`)+strings.Count(body, `"name":"old"`)) {
				t.Errorf("GET %s: %s is missing somewhere in %s", path, text, body)
			}
		}
		if want == nil && strings.Contains(body, "hello") {
			t.Errorf("GET %s: %s", path, body)
		}
	}
	if rows := r.table(core).Rows; len(rows) != 2 || rows[0].Cells[3] != "pod/x" || rows[1].Cells[3] != "pod/x" {
		t.Errorf("the table of events is %+v", rows)
	}
}
