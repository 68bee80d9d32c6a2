// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const (
	accounts    = "/api/v1/namespaces/{ns}/serviceaccounts"
	secrets     = "/api/v1/namespaces/{ns}/secrets"
	reviews     = "/apis/authentication.k8s.io/v1/tokenreviews"
	requests    = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	deployments = "/apis/apps/v1/namespaces/{ns}/deployments"
	merge       = "application/merge-patch+json"
	apply       = "application/apply-patch+yaml"
)

// signingRequest is a request for the certificate of the name x, in PEM and base64.
const signingRequest = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIR01HNENBUUF3RERFS01BZ0dBMVVFQXd3QmVEQlpNQk1HQnlxR1NNNDlBZ0VHQ0NxR1NNNDlBd0VIQTBJQQpCRWZWMkNvOUVxekpwMWhXVGxJNTJJek43OURJMUpBNkxaSGhiZ3BzeGhOcU41ZVpVRGMrUEF1NjFDdTQ3ZHI1ClNjOVdZMDB3ZnJFVnI2ait3cllFbEVLZ0FEQUtCZ2dxaGtqT1BRUURBZ05JQURCRkFpRUFrYjJCdXczZnRFSEYKb2JhaHkrM3BWbmRoUWRBS29jUUkzWTBhd1Bsc1JjQUNJRko1YnlTdldrQjdjdEd5eENidkkyNkQ0L3lWZTVNQwpxWW1Za2NJZW44elAKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg=="

// subresources are requests for subresources that the sequences do not use, and for what every
// cluster has. {token} is the token that was issued last.
var subresources = []operation{
	{Method: "GET", Path: "/api/v1/namespaces/default/services/kubernetes"},

	{Method: "POST", Path: accounts, Body: `{"metadata":{"name":"a"}}`},
	{Method: "POST", Path: secrets, Body: `{"metadata":{"name":"s"}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{}`},
	{Method: "POST", Path: reviews, Body: `{"spec":{"token":"{token}"}}`},
	{Method: "POST", Path: reviews, Body: `{"spec":{"token":"{token}x"}}`},
	{Method: "POST", Path: reviews, Body: `{"spec":{"token":"{token}","audiences":["b"]}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"metadata":{"name":"b"}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"audiences":["a","b"],"expirationSeconds":7200}}`},
	{Method: "POST", Path: reviews, Body: `{"spec":{"token":"{token}","audiences":["b","c"]}}`},
	{Method: "POST", Path: accounts + "/none/token", Body: `{}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"expirationSeconds":60}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"expirationSeconds":5000000000}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"none"}}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"ConfigMap","name":"c"}}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s","uid":"1"}}}`},
	{Method: "POST", Path: accounts + "/a/token", Body: `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s"}}}`},
	{Method: "POST", Path: reviews, Body: `{"spec":{"token":"{token}"}}`},
	{Method: "GET", Path: accounts + "/a/token"},
	{Method: "DELETE", Path: accounts + "/a/token"},

	{Method: "POST", Path: requests, Body: `{"metadata":{"name":"c"},"spec":{"signerName":"example.com/s","username":"me","usages":["client auth"],"request":"` + signingRequest + `"}}`},
	{Method: "POST", Path: requests, Body: `{"metadata":{"name":"d"},"spec":{"signerName":"s","expirationSeconds":1,"request":"eA=="}}`},
	{Method: "PATCH", Path: requests + "/c", Type: merge, Body: `{"spec":{"signerName":"example.com/t"},"status":{"conditions":[{"type":"Approved","status":"True"}]}}`},
	{Method: "PATCH", Path: requests + "/c/status", Type: merge, Body: `{"status":{"conditions":[{"type":"Approved","status":"True"}]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"metadata":{"labels":{"a":"b"}},"spec":{"signerName":"example.com/t"},"status":{"certificate":"eA==","conditions":[{"type":"Approved","status":"True","reason":"Good"}]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"status":{"conditions":[{"type":"Approved","status":"True","reason":"Better"}]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"status":{"conditions":[]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"status":{"conditions":[{"type":"Approved","status":"True"},{"type":"Denied","status":"True"}]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"status":{"conditions":[{"type":"Approved","status":"False"}]}}`},
	{Method: "PATCH", Path: requests + "/c/approval", Type: merge, Body: `{"status":{"conditions":[{"type":"Approved","status":"True"},{"type":"","status":""}]}}`},
	{Method: "PATCH", Path: requests + "/none/approval", Type: merge, Body: `{}`},
	{Method: "GET", Path: requests + "/c/approval"},
	{Method: "POST", Path: requests + "/c/approval", Body: `{}`},
	{Method: "DELETE", Path: requests + "/c/approval"},
	{Method: "DELETE", Path: requests + "/c/status"},
	{Method: "DELETE", Path: requests + "/c"},

	{Method: "POST", Path: deployments + "?fieldManager=author", Body: `{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler&force=true", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`},
	{Method: "GET", Path: deployments + "/d"},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=other", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":4}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler&force=true", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":-1}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler&force=true", Type: apply, Body: `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":5}}`},
	{Method: "PATCH", Path: deployments + "/d/scale?fieldManager=scaler&force=true", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"resourceVersion":"1"},"spec":{"replicas":5}}`},
	{Method: "PATCH", Path: deployments + "/none/scale?fieldManager=scaler", Type: apply, Body: `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":3}}`},
	{Method: "PUT", Path: deployments + "/d/scale", Body: `{"metadata":{"name":"d"},"spec":{"replicas":6}}`},
	{Method: "DELETE", Path: deployments + "/d/scale"},
	{Method: "GET", Path: deployments + "/d"},
}

// Subresources do what those of the real server do.
func TestSubresources(t *testing.T) {
	rings.Test(t, "starts a control plane")
	crds, plane := definitions(t), shared.ForTest(t)
	real, memory := newTarget(t, "real", plane.Config()), newMemory(t, crds)
	a, b := real.begin(t, "subresources"), memory.begin(t, "subresources")
	tokens := map[*run]string{}
	send := func(r *run, o operation) answer {
		o = r.fill(o)
		o.Body = strings.ReplaceAll(o.Body, "{token}", tokens[r])
		if o.Type == "" {
			o.Type = "application/json"
		}
		got, err := r.do(o)
		must(t, err)
		r.note(o, got)
		if token := at(got.Body, "status", "token"); token != nil {
			tokens[r] = fmt.Sprint(token)
		}
		return answer{got.Code, r.normalize("", without(got.Body))}
	}
	for _, o := range subresources {
		if diff := cmp.Diff(send(a, o), send(b, o)); diff != "" {
			t.Errorf("%s (-real +memory):\n%s", o, diff)
		}
	}
}

// at returns a field of an object.
func at(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

// without returns an answer without what the two servers are bound to differ in: their issuers and
// addresses, and who the client is.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, child := range v {
			out[name] = child
		}
		names := []string{"token", "ip", "addresses", "port", "targetPort"}
		if out["signerName"] != nil || out["f:signerName"] != nil {
			names = []string{"username", "groups"}
			delete(out, "extra") // of a client with a certificate
		}
		for _, name := range names {
			if out[name] != nil {
				out[name] = "<" + name + ">"
			}
		}
		for name, child := range out {
			out[name] = without(child)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = without(child)
		}
		return out
	case string:
		return issuers.Replace(v)
	}
	return v
}

var issuers = strings.NewReplacer("https://kubernetes.default.svc.cluster.local", "<issuer>", "https://kubernetes.default.svc", "<issuer>")
