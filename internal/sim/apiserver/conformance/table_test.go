// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// shown are objects whose rows are compared.
var shown = []struct{ collection, object string }{
	{"/api/v1/namespaces/tables/pods", `{"metadata":{"name":"x"},"spec":{"containers":[{"name":"c","image":"nginx"}],"readinessGates":[{"conditionType":"a.b/c"}]}}`},
	{"/api/v1/namespaces/tables/configmaps", `{"metadata":{"name":"x"},"data":{"a":"b","c":"d"}}`},
	{"/api/v1/namespaces/tables/secrets", `{"metadata":{"name":"x"},"stringData":{"a":"b"}}`},
	{"/api/v1/namespaces/tables/serviceaccounts", `{"metadata":{"name":"x"}}`},
	{"/api/v1/namespaces/tables/services", `{"metadata":{"name":"x"},"spec":{"clusterIP":"None","selector":{"a":"b","c":"d"},"ports":[{"port":80}]}}`},
	{"/api/v1/namespaces/tables/services", `{"metadata":{"name":"y"},"spec":{"type":"ExternalName","externalName":"example.com"}}`},
	{"/api/v1/namespaces/tables/persistentvolumeclaims", `{"metadata":{"name":"x"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
	{"/apis/apps/v1/namespaces/tables/deployments", `{"metadata":{"name":"x"},"spec":{"replicas":2,` + shownTemplate + `}}`},
	{"/apis/apps/v1/namespaces/tables/replicasets", `{"metadata":{"name":"x"},"spec":{` + shownTemplate + `}}`},
	{"/apis/apps/v1/namespaces/tables/statefulsets", `{"metadata":{"name":"x"},"spec":{"serviceName":"x",` + shownTemplate + `}}`},
	{"/apis/apps/v1/namespaces/tables/daemonsets", `{"metadata":{"name":"x"},"spec":{` + shownTemplate + `}}`},
	{"/apis/batch/v1/namespaces/tables/jobs", `{"metadata":{"name":"x"},"spec":{"parallelism":2,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`},
	{"/apis/batch/v1/namespaces/tables/cronjobs", `{"metadata":{"name":"x"},"spec":{"schedule":"@daily","jobTemplate":{"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}}}`},
	{"/apis/networking.k8s.io/v1/namespaces/tables/ingresses", `{"metadata":{"name":"x"},"spec":{"tls":[{"hosts":["a.b"]}],"rules":[{"host":"a.b"},{"host":"c.d"}]}}`},
	{"/apis/networking.k8s.io/v1/namespaces/tables/networkpolicies", `{"metadata":{"name":"x"},"spec":{"podSelector":{"matchLabels":{"a":"b"}}}}`},
	{"/apis/policy/v1/namespaces/tables/poddisruptionbudgets", `{"metadata":{"name":"x"},"spec":{"maxUnavailable":"50%"}}`},
	{"/apis/autoscaling/v2/namespaces/tables/horizontalpodautoscalers", `{"metadata":{"name":"x"},"spec":{"minReplicas":2,"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"x","apiVersion":"apps/v1"}}}`},
	{"/apis/coordination.k8s.io/v1/namespaces/tables/leases", `{"metadata":{"name":"x"},"spec":{"holderIdentity":"me"}}`},
	{"/apis/rbac.authorization.k8s.io/v1/namespaces/tables/rolebindings", `{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"r"},"subjects":[{"kind":"ServiceAccount","namespace":"n","name":"s"},{"kind":"User","name":"u","apiGroup":"rbac.authorization.k8s.io"}]}`},
	{
		"/apis/conformance.ctrlkit.dev/v1/namespaces/tables/things",
		`{"apiVersion":"conformance.ctrlkit.dev/v1","kind":"Thing","metadata":{"name":"x"},"spec":{"size":3,"tags":["a","b"],"free":{"a":[1,"b"]}}}`,
	},
	{"/apis/scheduling.k8s.io/v1/priorityclasses", `{"metadata":{"name":"x"},"value":7}`},
	{"/api/v1/namespaces/tables/events", `{"metadata":{"name":"x","namespace":"tables"},"involvedObject":{"kind":"Pod","namespace":"tables","name":"x","fieldPath":"spec"},"reason":"R","message":"m","type":"Normal","count":3,"source":{"component":"c","host":"h"}}`},
}

const shownTemplate = `"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"},{"name":"d","image":"j"}]}}`

// Tables have the columns and the cells of the real server.
func TestTables(t *testing.T) {
	rings.Test(t, "starts a control plane")
	crds, plane := definitions(t), shared.ForTest(t)
	real, memory := newTarget(t, "real", plane.Config()), newMemory(t, crds)
	for _, g := range []*target{real, memory} {
		g.begin(t, "tables")
		for _, s := range shown {
			if a, err := g.do(operation{Method: "POST", Path: s.collection, Type: "application/json", Body: s.object}); err != nil || a.Code != http.StatusCreated {
				t.Fatalf("%s: creating what is shown of %s: %v %v", g.name, s.collection, a, err)
			}
		}
	}
	for _, path := range collectionsOf(t, plane) {
		want, got := real.table(t, path), memory.table(t, path)
		if named := slices.ContainsFunc(want.ColumnDefinitions, func(c metav1.TableColumnDefinition) bool { return c.Name == "Name" }); len(got.ColumnDefinitions) == 2 && named {
			continue // a name and an age, as the limits say
		}
		if diff := cmp.Diff(headersOf(want), headersOf(got)); diff != "" {
			t.Errorf("the columns of %s (- real, + in memory):\n%s", path, diff)
		}
	}
	for _, s := range shown {
		if diff := cmp.Diff(cellsOf(real.table(t, s.collection)), cellsOf(memory.table(t, s.collection))); diff != "" {
			t.Errorf("the rows of %s (- real, + in memory):\n%s", s.collection, diff)
		}
	}
}

// collectionsOf returns the paths of all kinds that the real server lists.
func collectionsOf(t *testing.T, plane *controlplane.ControlPlane) []string {
	t.Helper()
	client, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	must(t, err)
	groups, err := client.ServerPreferredResources()
	must(t, err)
	var paths []string
	for _, group := range groups {
		root := "/apis/" + group.GroupVersion
		if group.GroupVersion == "v1" {
			root = "/api/v1"
		}
		for _, r := range group.APIResources {
			if slices.Contains([]string(r.Verbs), "list") && !notInMemory(group.GroupVersion) {
				paths = append(paths, root+"/"+r.Name)
			}
		}
	}
	return paths
}

func notInMemory(groupVersion string) bool {
	return strings.HasPrefix(groupVersion, "apiregistration.k8s.io/")
}

// table asks for a table as kubectl does.
func (g *target) table(t *testing.T, path string) metav1.Table {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.host+path, nil)
	must(t, err)
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := g.client.Do(request)
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode == http.StatusTooManyRequests { // the real server still prepares a custom kind
		return g.table(t, path)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil || table.Kind != "Table" {
		t.Fatalf("%s: GET %s is answered with %d %s", g.name, path, response.StatusCode, data)
	}
	return table
}

// headersOf returns the columns, but for their descriptions.
func headersOf(table metav1.Table) []string {
	var headers []string
	for _, c := range table.ColumnDefinitions {
		headers = append(headers, fmt.Sprintf("%s %s %s %d", c.Name, c.Type, c.Format, c.Priority))
	}
	return headers
}

// generated are UIDs.
var generated = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// cellsOf returns the cells of what the test has created, but for times and UIDs.
func cellsOf(table metav1.Table) [][]any {
	var rows [][]any
	for _, row := range table.Rows {
		if !strings.Contains(string(row.Object.Raw), `"name":"x"`) && !strings.Contains(string(row.Object.Raw), `"name":"y"`) {
			continue // every real cluster has it
		}
		for i, cell := range row.Cells {
			if text, ok := cell.(string); ok {
				row.Cells[i] = generated.ReplaceAllString(text, "uid")
			}
		}
		for i, c := range table.ColumnDefinitions {
			if c.Name == "Age" || c.Name == "Created At" {
				row.Cells[i] = "time"
			}
		}
		rows = append(rows, row.Cells)
	}
	return rows
}
