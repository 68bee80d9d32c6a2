// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// newCluster returns a cluster with a ConfigMap of a user, and what counts how often it was active.
func newCluster(t *testing.T) (c *Cluster, active *int) {
	t.Helper()
	active = new(int)
	c = New(apiserver.New(apiserver.Options{Now: time.Now, Seed: 1}), trace.New(), func() { *active++ })
	c.Server.OnChange(c.Changed)
	ask(t, c, "user", "POST", configMaps, `{"metadata":{"name":"x","labels":{"own":"1"}},"data":{"a":"1"}}`)
	return c, active
}

// ask sends a request of a client, which must succeed.
func ask(t *testing.T, c *Cluster, actor, method, path, body string) []byte {
	t.Helper()
	contentType := "application/json"
	if method == "PATCH" {
		contentType = "application/merge-patch+json"
	}
	answer, err := c.Ask(actor, method, path, contentType, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// lines returns the trace without times and columns.
func lines(c *Cluster) []string {
	var list []string
	for _, e := range c.trace.Entries() {
		list = append(list, strings.Join([]string{e.Actor, e.What, e.Text}, ": "))
	}
	return list
}

// A request of a client other than the operator is in the trace, and counts as activity, if it is a
// write. A refusal is an error that client-go knows.
func TestAsk(t *testing.T) {
	c, active := newCluster(t)
	body := ask(t, c, "other", "GET", configMaps+"/x", "")
	equal(t, "the answer", true, strings.Contains(string(body), `"a":"1"`))
	equal(t, "activity after a read", 1, *active)
	_, err := c.Ask("other", "DELETE", configMaps+"/y", "application/json", nil)
	equal(t, "the error is of a missing object", true, apierrors.IsNotFound(err))
	_, err = c.Ask("user", "POST", configMaps, "application/json", []byte(`{"metadata":{"name":"x"}}`))
	equal(t, "the error is of a taken name", true, apierrors.IsAlreadyExists(err))
	_, err = c.Ask("user", "GET", "%", "application/json", nil)
	equal(t, "the path is wrong", true, err != nil)
	equal(t, "activity", 3, *active)
	equal(t, "the trace", []string{
		"user: write: create configmaps default/x -> 201",
		`other: write: delete configmaps default/y -> 404 NotFound: configmaps "y" not found`,
		`user: write: create configmaps default/x -> 409 AlreadyExists: configmaps "x" already exists`,
	}, lines(c))
	var actors []string
	c.Server.OnChange(func(change apiserver.Change) { actors = append(actors, change.Actor) })
	ask(t, c, "other", "DELETE", configMaps+"/x", "{}")
	equal(t, "the actor of the change", []string{"other"}, actors)
}

// A request of the operator is in the trace as what it counts as.
func TestExecute(t *testing.T) {
	c, active := newCluster(t)
	r := request(t, "PUT", configMaps+"/y", "application/json", `{"metadata":{"name":"y"}}`)
	r.Actor = "operator-2"
	equal(t, "the answer", 404, c.Execute(r, "write 3").Code)
	equal(t, "the trace", `operator-2: write 3: update configmaps default/y -> 404 NotFound: configmaps "y" not found`, lines(c)[1])
	equal(t, "activity", 1, *active)
}

// A list of the past shows a kind as it was some changes ago, and from the beginning if there were
// fewer. The request itself is as before.
func TestExecuteInPast(t *testing.T) {
	c, _ := newCluster(t)
	for i := 2; i <= 4; i++ {
		ask(t, c, "user", "PATCH", configMaps+"/x", `{"data":{"a":"`+strconv.Itoa(i)+`"}}`)
		ask(t, c, "user", "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s`+strconv.Itoa(i)+`"}}`)
	}
	list := request(t, "GET", configMaps, "", "")
	list.Actor = "operator"
	for changes, want := range map[int]string{0: `"a":"4"`, 1: `"a":"3"`, 3: `"a":"1"`, 4: `"items":[]`, 99: `"items":[]`} {
		if body := string(c.ExecuteInPast(list, changes).Body); !strings.Contains(body, want) {
			t.Errorf("%d changes ago: got %s, want %s", changes, body, want)
		}
	}
	equal(t, "the query", 0, len(list.Query))
	if last := lines(c)[len(lines(c))-1]; last != "operator: read: list configmaps in default of the past -> 200" {
		t.Errorf("the trace has %q", last)
	}
	equal(t, "the version of an unknown kind", "1", c.VersionBefore("jobs.batch", 0))
}

// What users have created is what the objects that they create again are made of: as they created
// it, no matter who has changed it since.
func TestWritten(t *testing.T) {
	c, _ := newCluster(t)
	ask(t, c, "other", "PATCH", configMaps+"/x", `{"metadata":{"labels":{"added":"1"},"annotations":{"b":"1","a":"1"}}}`)
	ask(t, c, "user", "PATCH", configMaps+"/x", `{"metadata":{"labels":{"later":"1"}}}`)
	ask(t, c, "operator", "POST", configMaps, `{"metadata":{"name":"child"}}`)
	ask(t, c, "user", "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"}}`)
	equal(t, "written", []string{"configmaps default/x", "secrets default/s"}, c.Written())
	metadata, ok := c.WrittenMetadata("configmaps default/x")
	equal(t, "labels", any(map[string]any{"own": "1", "later": "1"}), metadata["labels"])
	equal(t, "written by a user", true, ok)
	_, ok = c.WrittenMetadata("configmaps default/child")
	equal(t, "the operator's was written by a user", false, ok)
	o, err := c.LookUp("configmaps default/x")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "added labels", []string{"added"}, c.Added("configmaps default/x", "labels", o.GetLabels()))
	equal(t, "added annotations", []string{"a", "b"}, c.Added("configmaps default/x", "annotations", o.GetAnnotations()))
	equal(t, "all of the operator's", []string{"l"}, c.Added("configmaps default/child", "labels", map[string]string{"l": "1"}))
	ask(t, c, "user", "PATCH", configMaps+"/x", `{"metadata":{"labels":{"own":null}}}`)
	metadata, _ = c.WrittenMetadata("configmaps default/x")
	equal(t, "labels that a user has taken back", any(map[string]any{"later": "1"}), metadata["labels"])
	ask(t, c, "other", "DELETE", configMaps+"/x", "{}")
	equal(t, "written after a deletion", []string{"configmaps default/x", "secrets default/s"}, c.Written())
}

// Prerequisites are what users had created before the operator started. Of them, Secrets and
// ConfigMaps can be withheld.
func TestPrerequisites(t *testing.T) {
	c, _ := newCluster(t)
	ask(t, c, "user", "POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
	ask(t, c, "user", "POST", "/api/v1/namespaces/n/secrets", `{"metadata":{"name":"s"}}`)
	ask(t, c, "operator", "POST", configMaps, `{"metadata":{"name":"child"}}`)
	equal(t, "before", false, c.IsPrerequisite("configmaps default/x"))
	c.NotePrerequisites()
	ask(t, c, "user", "POST", configMaps, `{"metadata":{"name":"later"}}`)
	equal(t, "withholdable", []string{"configmaps default/x", "secrets n/s"}, c.Withholdable())
	for of, want := range map[string]bool{
		"configmaps default/x": true, "secrets n/s": true, "namespaces /n": true, "configmaps default/child": false, "configmaps default/later": false,
	} {
		equal(t, of, want, c.IsPrerequisite(of))
	}
}

// Children are what the operator has created, also when it is gone.
func TestIsChild(t *testing.T) {
	c, _ := newCluster(t)
	ask(t, c, "operator-2", "POST", configMaps, `{"metadata":{"name":"child"}}`)
	ask(t, c, "other", "POST", configMaps, `{"metadata":{"name":"other"}}`)
	ask(t, c, "operator", "PATCH", configMaps+"/x", `{"data":{"a":"2"}}`)
	ask(t, c, "user", "DELETE", configMaps+"/child", "{}")
	for of, want := range map[string]bool{"configmaps default/child": true, "configmaps default/other": false, "configmaps default/x": false} {
		equal(t, of, want, c.IsChild(of))
	}
}

// The server is asked whether it accepts an object without creating it.
func TestAccepts(t *testing.T) {
	c, active := newCluster(t)
	before, actives := len(lines(c)), *active
	named := func(name string) map[string]any { return map[string]any{"metadata": map[string]any{"name": name}} }
	equal(t, "answers", []bool{true, true, false, false}, []bool{
		c.Accepts(configMaps, named("y")), c.Accepts(configMaps, named("y")), c.Accepts(configMaps, named("x")), c.Accepts(configMaps, named("NO")),
	})
	equal(t, "lines in the trace", before, len(lines(c)))
	equal(t, "activity", actives, *active)
	equal(t, "a built-in kind is custom", false, c.IsCustom(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}))
}

// An object is found by its kind, namespace and name, and its content is a copy.
func TestLookUp(t *testing.T) {
	c, _ := newCluster(t)
	ask(t, c, "user", "POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
	for of, want := range map[string]string{
		"configmaps default/x": configMaps + "/x", "namespaces /n": "/api/v1/namespaces/n",
		"configmaps /x": "", "configmaps n/x": "", "secrets default/x": "", "configmaps.demo.example.com default/x": "", "nonsense": "",
	} {
		o, err := c.LookUp(of)
		equal(t, of, want, o.Path)
		equal(t, of+" is missing", want == "", err != nil)
		if err != nil && !strings.Contains(err.Error(), of) {
			t.Errorf("%s: the error is %v", of, err)
		}
	}
	o, err := c.LookUp("configmaps default/x")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the collection", configMaps, o.Collection)
	o.Object["data"].(map[string]any)["a"] = "changed"
	o.SetLabels(nil)
	now, err := c.LookUp("configmaps default/x")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "the data", any(map[string]any{"a": "1"}), now.Object["data"])
	equal(t, "the labels", map[string]string{"own": "1"}, now.GetLabels())
}

// An answer that is no Status is shown by its code.
func TestDescribeAnswer(t *testing.T) {
	tests := map[string]*apiserver.Response{
		"x -> 201":                     {Code: 201, Body: []byte(`{"reason":"none","message":"of a success"}`)},
		"x -> 409 Conflict: try again": {Code: 409, Body: []byte(`{"reason":"Conflict","message":"try again"}`)},
		"x -> 403 Forbidden:":          {Code: 403, Body: []byte(`{"reason":"Forbidden"}`)},
		"x -> 500":                     {Code: 500, Body: []byte("broken")},
	}
	var got, want []string
	for text, response := range tests {
		got, want = append(got, DescribeAnswer("x", response)), append(want, text)
	}
	slices.Sort(got)
	slices.Sort(want)
	equal(t, "texts", want, got)
}
