// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// probe is a request that the sequences do not make.
type probe struct {
	method, path      string // with {ns} for the namespace
	accept, mediaType string
	body              string
}

const (
	maps   = "/api/v1/namespaces/{ns}/configmaps"
	things = "/apis/conformance.ctrlkit.dev/v1/namespaces/{ns}/things"
	access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
)

var probes = []probe{
	{"POST", maps, "", "", `{"metadata":{"name":"x"},"data":{"a":"1"}}`},
	{"GET", maps + "/x", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", ""},
	{"GET", maps + "?labelSelector=none", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", "", ""},
	{"GET", maps + "/x", "application/cbor", "", ""},
	{"GET", maps, "application/cbor", "", ""},
	{"GET", things, "application/vnd.kubernetes.protobuf", "", ""},
	{"GET", things + "?continue=abc", "", "", ""},
	{"GET", maps + "/x", "application/cbor,application/json", "", ""},
	{"GET", maps + "/none", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "", ""},
	{"GET", things, "application/vnd.kubernetes.protobuf,application/json", "", ""},
	{"GET", things, "application/vnd.kubernetes.protobuf;q=0.1,application/yaml;q=0.2,application/json;q=0.9", "", ""},
	{"POST", maps, "", "application/cbor", "x"},
	{"POST", maps, "", "text/plain", `{"metadata":{"name":"y"}}`},
	{"POST", maps, "", "application/yaml", "metadata: {name: from-yaml}"},
	{"POST", maps + "?dryRun=Some", "", "", `{"metadata":{"name":"y"}}`},
	{"PUT", maps + "/x?dryRun=Some", "", "", `{"metadata":{"name":"x"}}`},
	{"PATCH", maps + "/x?dryRun=Some", "", "application/merge-patch+json", `{}`},
	{"PATCH", maps + "/x?force=true", "", "application/merge-patch+json", `{}`},
	{"DELETE", maps + "/x?dryRun=Some", "", "", ""},
	{"DELETE", maps + "/x", "", "", `{"dryRun":["Some"]}`},
	{"DELETE", maps + "/x?dryRun=All", "", "", ""},
	{"DELETE", maps + "/x?gracePeriodSeconds=x", "", "", ""},
	{"POST", maps + "?fieldValidation=Some", "", "", `{"metadata":{"name":"y"}}`},
	{"POST", maps + "?fieldManager=" + strings.Repeat("m", 130), "", "", `{"metadata":{"name":"y"}}`},
	{"GET", maps + "?limit=many", "", "", ""},
	{"GET", maps + "?resourceVersionMatch=Exact", "", "", ""},
	{"GET", maps + "?resourceVersion=0&resourceVersionMatch=Exact", "", "", ""},
	{"GET", maps + "?resourceVersion=1&resourceVersionMatch=Some", "", "", ""},
	{"GET", maps + "?sendInitialEvents=true", "", "", ""},
	{"GET", maps + "?continue=abc&resourceVersion=5", "", "", ""},
	{"GET", maps + "?fieldSelector=data.a%3Db", "", "", ""},
	{"POST", maps, "", "", `{"metadata":{"name":"y"},"data":{"a":"` + strings.Repeat("x", 3<<20) + `"}}`},
	{"POST", things, "", "", `{"metadata":{"name":"y"}}`},
	{"POST", things, "", "", `{"kind":"Thing","metadata":{"name":"y"}}`},
	{"POST", things, "", "", `{"apiVersion":"conformance.ctrlkit.dev/v2","kind":"Thing","metadata":{"name":"y"}}`},
	{"POST", things, "", "", `{"apiVersion":"conformance.ctrlkit.dev/v1","kind":"Thong","metadata":{"name":"y"}}`},
	{"POST", things, "", "", `{"apiVersion":"conformance.ctrlkit.dev/v1","kind":"Thing","metadata":{"name":"y"},"spec":{"name":"` + strings.Repeat("x", 7<<18) + `"}}`},
	{"POST", access, "", "", `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`},
	{"POST", access, "", "", `{"spec":{}}`},
	{"POST", access, "", "", `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/"}}}`},
	{"GET", access, "", "", ""},
	{"POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", "", "", `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`},
	{"POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "", "", `{"spec":{}}`},
	{"POST", "/apis/authentication.k8s.io/v1/tokenreviews", "", "", `{"spec":{}}`},
	{"DELETE", "/api/v1/namespaces/default", "", "", ""},
	{"POST", "/api/v1/namespaces/{ns}/pods", "", "", `{"metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}]}}`},
	{"POST", "/api/v1/namespaces/{ns}/persistentvolumeclaims", "", "", `{"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`},
	{"POST", "/apis/batch/v1/namespaces/{ns}/jobs", "", "", `{"metadata":{"name":"j"},"spec":{"template":{"metadata":{"labels":{"a":"b"}},"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`},
	{"POST", "/apis/batch/v1/namespaces/{ns}/jobs", "", "", `{"metadata":{"name":"k"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}`},
	{"POST", "/api/v1/namespaces/{ns}/pods", "", "", `{"metadata":{"name":"p"},"spec":{"priorityClassName":"none","containers":[{"name":"c","image":"i"}]}}`},
	{"POST", "/api/v1/namespaces/{ns}/services", "", "", `{"metadata":{"name":"a"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":31999}]}}`},
	{"POST", "/api/v1/namespaces/{ns}/services", "", "", `{"metadata":{"name":"b"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":31999}]}}`},
	{"POST", "/api/v1/namespaces/{ns}/services", "", "", `{"metadata":{"name":"c"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}}`},
}

// The protocol is that of the real server: content types, options, limits, reviews and admission.
func TestProtocol(t *testing.T) {
	rings.Test(t, "starts a control plane")
	crds, plane := definitions(t), shared.ForTest(t)
	real, memory := newTarget(t, "real", plane.Config()).begin(t, "protocol"), newMemory(t, crds).begin(t, "protocol")
	for _, p := range probes {
		want, wantType := real.probe(t, p)
		got, gotType := memory.probe(t, p)
		if text := cmp.Diff(want, got); text != "" || wantType != gotType {
			t.Errorf("%s %s [%s %s] %.80s: %s, want %s (-real +memory)\n%s", p.method, p.path, p.accept, p.mediaType, p.body, gotType, wantType, text)
		}
	}
}

// probe makes a request, and returns the answer and its content type.
func (r *run) probe(t *testing.T, p probe) (answer, string) {
	t.Helper()
	request, err := http.NewRequest(p.method, r.host+strings.ReplaceAll(p.path, "{ns}", r.namespace), strings.NewReader(p.body))
	must(t, err)
	request.Header.Set("User-Agent", "conformance/1")
	if p.accept != "" {
		request.Header.Set("Accept", p.accept)
	}
	if p.mediaType != "" {
		request.Header.Set("Content-Type", p.mediaType)
	}
	response, err := r.client.Do(request)
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(response.Body)
	must(t, err)
	a := answer{Code: response.StatusCode}
	if err := json.Unmarshal(data, &a.Body); err != nil {
		a.Body = string(data)
	}
	a.Body = r.normalize("", a.Body)
	return a, response.Header.Get("Content-Type")
}
