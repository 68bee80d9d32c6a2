// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// What is recorded of a write decides which faults can strike there.
func TestCatalogOfWrites(t *testing.T) {
	const configMaps, x = "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/x"
	apply := func(path, body string) *apiserver.Request {
		r := request(t, "PATCH", path+"?fieldManager=m", body)
		r.ContentType = "application/apply-patch+yaml"
		return r
	}
	finalizerPatch := request(t, "PATCH", x, `[{"op":"add","path":"/metadata/finalizers","value":["example.com/f"]}]`)
	finalizerPatch.ContentType = "application/json-patch+json"
	const version, owner = `{"metadata":{"name":"x","resourceVersion":"2"}}`, `"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]`
	versionPatch := request(t, "PATCH", x, `[{"op":"test","path":"/metadata/resourceVersion","value":"2"}]`)
	versionPatch.ContentType = "application/json-patch+json"
	tests := map[string]struct {
		request *apiserver.Request
		want    fault.Write
	}{
		"a creation":                  {request(t, "POST", configMaps, `{"metadata":{"name":"y"}}`), fault.Write{Verb: "create", Named: true}},
		"a creation with a finalizer": {request(t, "POST", configMaps, `{"metadata":{"name":"y","finalizers":["f"]}}`), fault.Write{Verb: "create", Named: true}},
		"a creation with a finalizer of what exists": {
			request(t, "POST", configMaps, `{"metadata":{"name":"x","finalizers":["f"]}}`), fault.Write{Verb: "create", Named: true, Exists: true},
		},
		"a creation with a generated name":  {request(t, "POST", configMaps, `{"metadata":{"generateName":"y-"}}`), fault.Write{Verb: "create"}},
		"a creation of what exists":         {request(t, "POST", configMaps, `{"metadata":{"name":"x"}}`), fault.Write{Verb: "create", Named: true, Exists: true}},
		"an apply that creates":             {apply(configMaps+"/y", `{"data":{}}`), fault.Write{Verb: "patch", Named: true}},
		"an apply that changes":             {apply(x, `{"data":{}}`), fault.Write{Verb: "patch", Named: true, Exists: true}},
		"an update":                         {request(t, "PUT", x, `{"metadata":{"name":"x"}}`), fault.Write{Verb: "update", Exists: true}},
		"a first finalizer":                 {request(t, "PATCH", x, `{"metadata":{"finalizers":["f"]}}`), fault.Write{Verb: "patch", Exists: true, AddsFinalizer: true}},
		"a first finalizer in a JSON patch": {finalizerPatch, fault.Write{Verb: "patch", Exists: true, AddsFinalizer: true}},
		"a second finalizer": {
			request(t, "PATCH", configMaps+"/held", `{"metadata":{"finalizers":["f","g"]}}`), fault.Write{Verb: "patch", Exists: true},
		},
		"a status": {
			request(t, "PATCH", "/api/v1/namespaces/default/pods/p/status", `{"metadata":{"finalizers":["f"]}}`),
			fault.Write{Verb: "patch", Subresource: "status", Exists: true},
		},
		"a deletion": {request(t, "DELETE", x, ""), fault.Write{Verb: "delete", Exists: true}},
		"a creation of a child": {
			request(t, "POST", configMaps, `{"metadata":{"name":"y",`+owner+`}}`), fault.Write{Verb: "create", Named: true, Owned: true},
		},
		"a creation of a child with a generated name": {
			request(t, "POST", configMaps, `{"metadata":{"generateName":"y-",`+owner+`}}`), fault.Write{Verb: "create", Owned: true},
		},
		"an apply of a child":          {apply(configMaps+"/y", "metadata: {"+owner+"}"), fault.Write{Verb: "patch", Named: true, Owned: true}},
		"an update of a version":       {request(t, "PUT", x, version), fault.Write{Verb: "update", Exists: true, Conditional: true}},
		"a patch of a version":         {request(t, "PATCH", x, version), fault.Write{Verb: "patch", Exists: true, Conditional: true}},
		"a JSON patch of a version":    {versionPatch, fault.Write{Verb: "patch", Exists: true, Conditional: true}},
		"a deletion of a version":      {request(t, "DELETE", x, `{"preconditions":{"resourceVersion":"2"}}`), fault.Write{Verb: "delete", Exists: true, Conditional: true}},
		"a deletion of a UID":          {request(t, "DELETE", x, `{"preconditions":{"uid":"2"}}`), fault.Write{Verb: "delete", Exists: true}},
		"an update of a child":         {request(t, "PUT", configMaps+"/child", `{}`), fault.Write{Verb: "update", Exists: true, Child: true}},
		"a deletion of a child":        {request(t, "DELETE", configMaps+"/child", ""), fault.Write{Verb: "delete", Exists: true, Child: true}},
		"an update of a child held":    {request(t, "PUT", configMaps+"/heldchild", `{}`), fault.Write{Verb: "update", Exists: true}},
		"an update of a Job":           {request(t, "PUT", "/apis/batch/v1/namespaces/default/jobs/j", `{}`), fault.Write{Verb: "update", Exists: true}},
		"a change of what isn't there": {request(t, "PATCH", configMaps+"/y", "{}"), fault.Write{Verb: "patch"}},
	}
	for name, test := range tests {
		s := newStage(t, "no fault")
		s.Catalog = &Catalog{}
		s.ask(t, "user", "POST", configMaps, `{"metadata":{"name":"held","finalizers":["f"]}}`)
		s.Cluster.NotePrerequisites()
		s.ask(t, "operator", "POST", configMaps, `{"metadata":{"name":"child"}}`)
		s.ask(t, "operator", "POST", configMaps, `{"metadata":{"name":"heldchild","finalizers":["f"]}}`)
		s.ask(t, "operator", "POST", "/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
		s.Write(&Write{Actor: "operator", Process: s, Turn: s, Request: test.request})
		want := fault.Place{Point: fault.AtWrite, At: 1, Write: &test.want}
		equal(t, name, []fault.Place{want}, s.Catalog.places[fault.AtWrite])
	}
}

// Objects of users are recorded at a write as they are just before it. What was there before the
// operator started is left out, and so is what the operator has created.
func TestCatalogOfUsersObjects(t *testing.T) {
	s := newStage(t, "no fault")
	s.Catalog = &Catalog{}
	const collection = "/api/v1/namespaces/default/pods"
	pod := func(actor, name, metadata string) {
		s.ask(t, actor, "POST", collection, `{"metadata":{"name":"`+name+`"`+metadata+`},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	}
	pod("user", "a", `,"annotations":{"own":"1"}`)
	pod("user", "b", "")
	pod("operator", "child", "")
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"y","finalizers":["example.com/f"]}}`)
	s.ask(t, "user", "DELETE", "/api/v1/namespaces/default/configmaps/y", "{}")
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"gone"}}`)
	s.ask(t, "user", "DELETE", "/api/v1/namespaces/default/configmaps/gone", "{}")
	for range 2 {
		s.do(t, `write PATCH pods/b {"metadata":{"labels":{"added":"1"}}}`)
	}
	pods := []string{"pods default/a", "pods default/b"}
	equal(t, "users", [][]string{pods, pods}, [][]string{s.Catalog.places[fault.AtWrite][0].Write.Users, s.Catalog.places[fault.AtWrite][1].Write.Users})
	equal(t, "statuses", pods, s.Catalog.places[fault.AtWrite][0].Write.Statuses)
	equal(t, "annotated", [][]string{nil, {"pods default/b"}}, [][]string{s.Catalog.places[fault.AtWrite][0].Write.Annotated, s.Catalog.places[fault.AtWrite][1].Write.Annotated})
}

// A write is recorded with the events that the operator has received before it.
func TestCatalogOfSeenEvents(t *testing.T) {
	s := newStage(t, "no fault")
	s.Catalog = &Catalog{}
	s.do(t, "write")
	s.event("secrets")
	s.event("jobs.batch")
	s.event("secrets")
	s.do(t, "write")
	s.event("secrets")
	equal(t, "seen", []map[string]int{nil, {"secrets": 2, "jobs.batch": 1}}, []map[string]int{
		s.Catalog.places[fault.AtWrite][0].Write.Seen, s.Catalog.places[fault.AtWrite][1].Write.Seen,
	})
}

// Places come in the order in which plans are tried.
func TestPlacesOfARun(t *testing.T) {
	s := newStage(t, "no fault")
	s.Catalog = &Catalog{}
	s.Detour(1)
	s.Deletion()
	s.event("secrets")
	s.event("jobs.batch")
	s.event("secrets")
	s.do(t, "call")
	s.Read(&Read{Actor: "operator", Request: request(t, "GET", "/api/v1/configmaps", "")})
	s.do(t, "write")
	var got []fault.Place
	for _, p := range s.Catalog.Places(2, func(p *fault.Place) { p.UsesClock = true }) {
		if !p.UsesClock {
			t.Errorf("%v is not complete", p)
		}
		p.UsesClock, p.Write = false, nil
		got = append(got, p)
	}
	equal(t, "places", []fault.Place{
		{Point: fault.AtWrite}, {Point: fault.WhenIdle, At: 1}, {Point: fault.WhenIdle, At: 2}, {Point: fault.AtWrite, At: 1},
		{Point: fault.AtRead, At: 1}, {Point: fault.AtCall, At: 1, Mutates: true}, {Point: fault.AtEvent, At: 1, Of: "secrets"},
		{Point: fault.AtEvent, At: 1, Of: "jobs.batch"}, {Point: fault.AtEvent, At: 2, Of: "secrets"}, {Point: fault.AtDeletion, At: 1},
		{Point: fault.AtDetour, At: 1},
	}, got)
}
