// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// objects is a source that has nothing but objects.
type objects map[string][]map[string]any

func (o objects) Read(_ context.Context, resource schema.GroupVersionResource) ([]map[string]any, error) {
	return o[resource.Resource], nil
}

// webhooksWith returns a source with webhooks for Deployments. fields are those of the webhook.
func webhooksWith(mutating bool, fields map[string]any) *fake {
	webhook := map[string]any{
		"name": "w.example.com", "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(1), "failurePolicy": "Fail",
		"rules": []any{map[string]any{"operations": []any{"CREATE", "UPDATE"}, "apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "resources": []any{"deployments"}}},
	}
	for name, value := range fields {
		webhook[name] = value
	}
	resource, kind := "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"
	if mutating {
		resource, kind = "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"
	}
	return &fake{objects: objects{
		resource: {{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "c"}, "webhooks": []any{webhook},
		}},
		"namespaces": {{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop", "labels": map[string]any{"team": "shop"}}}},
	}}
}

type fake struct {
	Source
	objects
}

func (f *fake) Read(ctx context.Context, resource schema.GroupVersionResource) ([]map[string]any, error) {
	return f.objects.Read(ctx, resource)
}

// write is one of an operator to a Deployment.
func write(mutating bool) apiserver.Write {
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "d", "namespace": "shop"}}}
	obj.SetGroupVersionKind(kind)
	return apiserver.Write{
		Request: &apiserver.Request{Verb: "create", Namespace: "shop", Resource: kind.GroupVersion().WithResource("deployments")},
		Kind:    kind, Object: obj, Mutating: mutating,
	}
}

// answers runs a webhook, and returns its URL and its authority.
func answers(t *testing.T, answer func(w http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview)) (string, string) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil || review.Request.DryRun == nil || !*review.Request.DryRun {
			t.Errorf("asked %+v, error %v; want a review that is a dry run", review.Request, err)
			return
		}
		if got := r.URL.Query().Get("timeout"); got != "1s" {
			t.Errorf("asked with the timeout %q, want 1s", got)
		}
		answer(w, r, review)
	}))
	t.Cleanup(server.Close)
	return server.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

// respond is a webhook that answers with a response.
func respond(response admissionv1.AdmissionResponse) func(w http.ResponseWriter, r *http.Request, review *admissionv1.AdmissionReview) {
	return func(w http.ResponseWriter, _ *http.Request, review *admissionv1.AdmissionReview) {
		response := response
		if response.UID == "" {
			response.UID = review.Request.UID
		}
		review.Request, review.Response = nil, &response
		_ = json.NewEncoder(w).Encode(review) //nolint:errcheck // the client is gone
	}
}

func TestWebhooks(t *testing.T) {
	patch := admissionv1.PatchTypeJSONPatch
	labelled := respond(admissionv1.AdmissionResponse{Allowed: true, PatchType: &patch, Patch: []byte(`[{"op":"add","path":"/metadata/labels","value":{"by":"webhook"}}]`)})
	silent := func(_ http.ResponseWriter, r *http.Request, _ *admissionv1.AdmissionReview) { <-r.Context().Done() }
	broken := func(w http.ResponseWriter, _ *http.Request, _ *admissionv1.AdmissionReview) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	}
	for name, tt := range map[string]struct {
		answer   func(http.ResponseWriter, *http.Request, *admissionv1.AdmissionReview)
		mutating bool
		fields   map[string]any
		err      string // a part of the error; "" for none
		unknown  string
		labels   map[string]string
	}{
		"admits":          {answer: respond(admissionv1.AdmissionResponse{Allowed: true})},
		"denies":          {answer: respond(admissionv1.AdmissionResponse{}), err: `admission webhook "w.example.com" denied the request`},
		"changes":         {answer: labelled, mutating: true, labels: map[string]string{"by": "webhook"}},
		"must not change": {answer: labelled, err: "validating webhook may not return response.patch"},
		"another answer":  {answer: respond(admissionv1.AdmissionResponse{UID: "other", Allowed: true}), err: "expected response.uid"},
		"fails":           {answer: broken, err: `failed calling webhook "w.example.com": failed to call webhook: it answers 500`},
		"may fail":        {answer: broken, fields: map[string]any{"failurePolicy": "Ignore"}},
		"is too slow":     {answer: silent, err: "deadline exceeded"},
		"may be slow":     {answer: silent, fields: map[string]any{"failurePolicy": "Ignore"}},
		"unknown authority": {
			answer: respond(admissionv1.AdmissionResponse{Allowed: true}),
			fields: map[string]any{"clientConfig": map[string]any{"url": "(url)"}}, err: "certificate",
		},
		"cannot be reached": {
			answer: respond(admissionv1.AdmissionResponse{}),
			fields: map[string]any{"clientConfig": map[string]any{"url": "https://127.0.0.1:1"}}, unknown: "it cannot be reached from here",
		},
		"has side effects": {answer: respond(admissionv1.AdmissionResponse{}), fields: map[string]any{"sideEffects": "Some"}, unknown: "side effects"},
		"another namespace": {
			answer: respond(admissionv1.AdmissionResponse{}),
			fields: map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "other"}}},
		},
		"this namespace": {
			answer: respond(admissionv1.AdmissionResponse{}),
			fields: map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"team": "shop"}}}, err: "denied",
		},
		"other objects": {
			answer: respond(admissionv1.AdmissionResponse{}),
			fields: map[string]any{"objectSelector": map[string]any{"matchLabels": map[string]any{"a": "b"}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, authority := answers(t, tt.answer)
			fields := map[string]any{"clientConfig": map[string]any{"url": url, "caBundle": []byte(authority)}}
			for name, value := range tt.fields {
				if config, ok := value.(map[string]any); ok && config["url"] == "(url)" {
					value = map[string]any{"url": url}
				}
				fields[name] = value
			}
			g, unread := newGuards(t.Context(), Options{Source: plain(t, webhooksWith(tt.mutating, fields)), Webhooks: true})
			if len(unread) > 0 {
				t.Fatal(unread)
			}
			w := write(tt.mutating)
			_, err := g.admit(w)
			if (tt.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got the error %v, want %q", err, tt.err)
			}
			if diff := cmp.Diff(tt.labels, w.Object.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if _, unknown := g.report(); (tt.unknown == "") != (len(unknown) == 0) || !strings.Contains(strings.Join(unknown, ""), tt.unknown) {
				t.Errorf("not known is %q, want %q", unknown, tt.unknown)
			}
		})
	}
}

// plain returns a source whose objects have been through JSON, as those of a cluster.
func plain(t *testing.T, f *fake) *fake {
	t.Helper()
	data, err := json.Marshal(f.objects)
	if err != nil {
		t.Fatal(err)
	}
	f.objects = objects{}
	if err := json.Unmarshal(data, &f.objects); err != nil {
		t.Fatal(err)
	}
	return f
}

// What is not asked is named, with what it would have been asked about.
func TestWhatIsNotAsked(t *testing.T) {
	source := webhooksWith(false, map[string]any{"clientConfig": map[string]any{"url": "https://127.0.0.1:1"}})
	source.objects["validatingadmissionpolicies"] = []map[string]any{{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": "limits"},
		"spec": map[string]any{"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"operations": []any{"*"}, "apiGroups": []any{"apps"}, "apiVersions": []any{"*"}, "resources": []any{"deployments"},
		}}}},
	}}
	g, _ := newGuards(t.Context(), Options{Source: plain(t, source)})
	for _, resource := range []string{"deployments", "statefulsets"} {
		w := write(false)
		w.Request.Resource.Resource = resource
		if _, err := g.admit(w); err != nil {
			t.Error(err)
		}
	}
	assumed, unknown := g.report()
	slices.Sort(assumed)
	want := []string{
		"the ValidatingAdmissionPolicy limits admits Deployment as they are: it is not asked",
		"the validating webhook w.example.com admits Deployment as they are: it is not asked (--webhooks)",
	}
	if diff := cmp.Diff(want, assumed); diff != "" || len(unknown) > 0 {
		t.Errorf("unknown %q, assumed (-want +got):\n%s", unknown, diff)
	}
}

// A Service is reached through the API server.
func TestWebhookOfAService(t *testing.T) {
	for name, tt := range map[string]struct {
		code    int
		unknown int
	}{"allowed": {http.StatusOK, 0}, "no right to use the proxy": {http.StatusForbidden, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.Method + " " + r.URL.Path
				body, _ := io.ReadAll(r.Body) //nolint:errcheck // the answer says it
				review := &admissionv1.AdmissionReview{}
				if tt.code != http.StatusOK || json.Unmarshal(body, review) != nil {
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(tt.code)
					fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":%d}`, tt.code)
					return
				}
				respond(admissionv1.AdmissionResponse{Allowed: true})(w, r, review)
			}))
			t.Cleanup(server.Close)
			cluster, err := NewCluster(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			source := plain(t, webhooksWith(false, map[string]any{"clientConfig": map[string]any{"service": map[string]any{"namespace": "shop", "name": "hooks", "path": "/check"}}}))
			g, _ := newGuards(t.Context(), Options{Source: source, Webhooks: true})
			g.caller = cluster
			if _, err := g.admit(write(false)); err != nil {
				t.Error(err)
			}
			if _, unknown := g.report(); len(unknown) != tt.unknown || asked != "POST /api/v1/namespaces/shop/services/https:hooks:443/proxy/check" {
				t.Errorf("asked %q, not known is %q", asked, unknown)
			}
		})
	}
}
