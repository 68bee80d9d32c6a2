// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// What is recorded of a write decides which faults can strike there.
func TestCatalogOfWrites(t *testing.T) {
	const owner = `"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]`
	const finalizer, version = `{"metadata":{"finalizers":["f"]}}`, `{"metadata":{"name":"x","resourceVersion":"2"}}`
	var b strings.Builder
	for _, write := range []string{
		`POST configmaps {"metadata":{"name":"y"}}`, `POST configmaps {"metadata":{"name":"y","finalizers":["f"]}}`,
		`POST configmaps {"metadata":{"name":"x","finalizers":["f"]}}`, `POST configmaps {"metadata":{"generateName":"y-"}}`,
		`POST configmaps {"metadata":{"name":"x"}}`, `APPLY configmaps/y {"data":{}}`, `APPLY configmaps/x {"data":{}}`,
		`PUT configmaps/x {"metadata":{"name":"x"}}`, `PATCH configmaps/x ` + finalizer,
		`JSON configmaps/x [{"op":"add","path":"/metadata/finalizers","value":["example.com/f"]}]`,
		`PATCH configmaps/held {"metadata":{"finalizers":["f","g"]}}`, `PATCH pods/p/status ` + finalizer, `DELETE configmaps/x`,
		`POST configmaps {"metadata":{"name":"y",` + owner + `}}`, `POST configmaps {"metadata":{"generateName":"y-",` + owner + `}}`,
		`APPLY configmaps/y metadata: {` + owner + `}`, `PUT configmaps/x ` + version, `PATCH configmaps/x ` + version,
		`JSON configmaps/x [{"op":"test","path":"/metadata/resourceVersion","value":"2"}]`,
		`DELETE configmaps/x {"preconditions":{"resourceVersion":"2"}}`, `DELETE configmaps/x {"preconditions":{"uid":"2"}}`,
		`PUT configmaps/child {}`, `DELETE configmaps/child`, `PUT configmaps/heldchild {}`,
		`PUT /apis/batch/v1/namespaces/default/jobs/j {}`, `PATCH configmaps/z {}`,
	} {
		s := newStage(t, "no fault")
		s.Catalog = &Catalog{}
		s.ask(t, "user", "POST", pathOf("configmaps"), `{"metadata":{"name":"held","finalizers":["f"]}}`)
		s.Cluster.NotePrerequisites()
		s.do(t, `create {"metadata":{"name":"child"}}`)
		s.do(t, `create {"metadata":{"name":"heldchild","finalizers":["f"]}}`)
		s.ask(t, "operator", "POST", "/apis/batch/v1/namespaces/default/jobs",
			`{"metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`)
		parts := append(strings.SplitN(write, " ", 3), "")
		r := request(t, strings.NewReplacer("APPLY", "PATCH", "JSON", "PATCH").Replace(parts[0]), pathOf(parts[1]), parts[2])
		switch parts[0] {
		case "APPLY":
			r.ContentType = "application/apply-patch+yaml"
		case "JSON":
			r.ContentType = "application/json-patch+json"
		}
		s.Write(&Write{Actor: "operator", Process: s, Turn: s, Request: r})
		text, err := json.Marshal(s.write(1))
		if err != nil {
			t.Fatal(err)
		}
		var fields []string // that are set
		for field := range strings.SplitSeq(strings.Trim(string(text), "{}"), ",") {
			if name, value, _ := strings.Cut(field, ":"); value != "false" && value != "null" && value != `""` {
				fields = append(fields, strings.TrimSuffix(strings.ReplaceAll(name+" "+value, `"`, ""), " true"))
			}
		}
		fmt.Fprintf(&b, "%s\n    %s\n", write, strings.Join(fields, ", "))
	}
	golden.Compare(t, "catalog.txt", b.String())
}

// write returns what the catalog has of a write.
func (s *stage) write(n int) *fault.Write {
	return s.Catalog.Places(0, func(*fault.Place) {})[n].Write
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
	for _, name := range []string{"empty", "used"} { // what is in the used one would be lost with it
		s.ask(t, "user", "POST", "/api/v1/namespaces", `{"metadata":{"name":"`+name+`"}}`)
	}
	s.ask(t, "user", "POST", "/api/v1/namespaces/used/secrets", `{"metadata":{"name":"input"}}`)
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"y","finalizers":["example.com/f"]}}`)
	s.ask(t, "user", "DELETE", "/api/v1/namespaces/default/configmaps/y", "{}")
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"gone"}}`)
	s.ask(t, "user", "DELETE", "/api/v1/namespaces/default/configmaps/gone", "{}")
	for range 2 {
		s.do(t, `write PATCH pods/b {"metadata":{"labels":{"added":"1"}}}`)
	}
	pods := []string{"pods default/a", "pods default/b"}
	users := append(append([]string{"namespaces /empty"}, pods...), "secrets used/input")
	equal(t, "users", [][]string{users, users}, [][]string{s.write(1).Users, s.write(2).Users})
	equal(t, "statuses", pods, s.write(1).Statuses)
	equal(t, "annotated", [][]string{nil, {"pods default/b"}}, [][]string{s.write(1).Annotated, s.write(2).Annotated})
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
		s.write(1).Seen, s.write(2).Seen,
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
		if p.Point == fault.AtWrite {
			p.Withholdable = nil
		}
		got = append(got, p)
	}
	equal(t, "places", []fault.Place{
		{Point: fault.AtWrite}, {Point: fault.WhenIdle, At: 1}, {Point: fault.WhenIdle, At: 2},
		{Point: fault.AtWrite, At: 1, Site: "patch configmaps default/x"},
		{Point: fault.AtRead, At: 1, Site: "list configmaps"},
		{Point: fault.AtCall, At: 1, Site: "buckets create", Mutates: true},
		{Point: fault.AtEvent, At: 1, Of: "secrets", Site: "ADDED secrets default/s"},
		{Point: fault.AtEvent, At: 1, Of: "jobs.batch", Site: "ADDED jobs.batch default/s"},
		{Point: fault.AtEvent, At: 2, Of: "secrets", Site: "ADDED secrets default/s"},
		{Point: fault.AtDeletion, At: 1, Withholdable: []string{"configmaps default/x", "secrets default/s"}}, {Point: fault.AtDetour, At: 1},
	}, got)
}
