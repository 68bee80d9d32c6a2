// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// newDefinition returns the definition of a kind whose size is at most 3.
func newDefinition(kind string) *apiextensionsv1.CustomResourceDefinition {
	plural := strings.ToLower(kind) + "s"
	d := &apiextensionsv1.CustomResourceDefinition{}
	d.Name = plural + ".example.com"
	d.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true,
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"size": {Type: "integer", Maximum: new(float64(3))}},
			}},
		}},
	}
	return d
}

// answerOf returns the code and the body with which a server answers.
func answerOf(t *testing.T, s *Server, method, path, body string) (int, string) {
	t.Helper()
	r, err := NewRequest(method, path, "application/json", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	answer := s.Serve(r)
	return answer.Code, string(answer.Body)
}

// Whenever requests come, a server answers them as if the definitions had been installed at once.
func TestPreparedDefinitionsAreServed(t *testing.T) {
	widgets, gadgets := newDefinition("Widget"), newDefinition("Gadget")
	const definitions, objects = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/example.com/v1/namespaces/default/widgets"
	requests := []struct{ method, path, body string }{
		{"GET", "/apis/example.com/v1", ""},
		{"GET", "/openapi/v3/apis/example.com/v1", ""},
		{"POST", objects, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"size":3}`},
		{"POST", objects, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"v"},"size":4}`},
		{"GET", definitions, ""},
		{"GET", definitions + "?resourceVersion=5&resourceVersionMatch=Exact", ""},
		{"POST", definitions, `{"metadata":{"name":"gadgets.example.com"},"spec":{}}`},
		{"GET", objects, ""},
		{"DELETE", definitions + "/gadgets.example.com", ""},
		{"GET", "/apis/example.com/v1/gadgets", ""},
	}
	p := Prepare(widgets, gadgets)
	for first := range requests { // what a request makes must not depend on those before it
		now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		o := Options{Now: func() time.Time { return now }}
		at, prepared := New(o), New(o)
		if err := at.Install(widgets, gadgets); err != nil {
			t.Fatal(err)
		}
		if err := prepared.InstallPrepared(p); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Hour)
		for _, r := range requests[first:] {
			wantCode, want := answerOf(t, at, r.method, r.path, r.body)
			code, got := answerOf(t, prepared, r.method, r.path, r.body)
			if code != wantCode || got != want {
				t.Errorf("%s %s as the first of %s %s: got %d, want %d, -want +got:\n%s", r.method, r.path, requests[first].method, requests[first].path, code, wantCode, cmp.Diff(want, got))
			}
		}
	}
}

// What no request needs is not compiled, and what is wrong is found by Check or by a request.
func TestPreparedDefinitionsAreCompiledWhenUsed(t *testing.T) {
	wrong := newDefinition("Wrong")
	wrong.Spec.Versions[0].Schema.OpenAPIV3Schema.Type = "nothing"
	p := Prepare(newDefinition("Used"), newDefinition("Unused"), wrong)
	s := New(Options{})
	if err := s.InstallPrepared(p); err != nil {
		t.Fatal(err)
	}
	compiled := func(i int) bool { return p.definitions[i].outlined.Versions[0].TypeConverter() != nil }
	if code, body := answerOf(t, s, http.MethodGet, "/apis/example.com/v1/useds", ""); code != http.StatusOK || !compiled(0) {
		t.Errorf("got %d, compiled %t: %s", code, compiled(0), body)
	}
	if compiled(1) || p.definitions[1].content != nil {
		t.Error("the definition of a kind was compiled that no request is for")
	}
	if code, body := answerOf(t, s, http.MethodGet, "/apis/example.com/v1/wrongs", ""); code != http.StatusInternalServerError || !strings.Contains(body, "openAPIV3Schema") {
		t.Errorf("a wrong definition: got %d %s", code, body)
	}
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "wrongs.example.com") {
		t.Errorf("Check returns %v", err)
	}
	if err := Prepare(newDefinition("Unused")).Check(); err != nil {
		t.Error(err)
	}
}
