// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// A moody API server answers requests for objects of certain names in its own way, until a time has
// passed.
type moody struct {
	server  http.RoundTripper
	answers map[string]int           // by a part of the path: the code
	until   map[string]time.Duration // since start
	start   time.Time
	asked   map[string]int
}

func (m *moody) RoundTrip(request *http.Request) (*http.Response, error) {
	for part, code := range m.answers {
		if !strings.Contains(request.URL.Path, part) {
			continue
		}
		m.asked[part]++
		if until, ok := m.until[part]; ok && time.Since(m.start) >= until {
			break
		}
		body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"answered %d","code":%d,"reason":%q}`, code, code, reasons[code])
		if code == typedPatch {
			code, body = 500, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"failed to create typed patch object (default/c; v1, Kind=ConfigMap): .dta: field not declared in schema","code":500}`
		}
		return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: request}, nil
	}
	return m.server.RoundTrip(request)
}

const typedPatch = 1500

var reasons = map[int]metav1.StatusReason{400: metav1.StatusReasonBadRequest, 403: metav1.StatusReasonForbidden, 422: metav1.StatusReasonInvalid, 500: metav1.StatusReasonInternalError, 503: metav1.StatusReasonServiceUnavailable}

// newSamples returns a run with ConfigMaps of these names as its samples.
func newSamples(t *testing.T, m *moody, kind string, names ...string) *runner {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	config := rest.CopyConfig(server.Config())
	m.server, m.start, m.asked = config.Transport, time.Now(), map[string]int{}
	config.Transport = m
	c, err := newCluster(config)
	must(t, err)
	r := &runner{Options: Options{Namespace: "default"}, cluster: c, steps: &steps{out: io.Discard, width: func() int { return 80 }}, operator: &operator{ended: make(chan struct{})}}
	for i, name := range names {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}}}
		r.manifests = append(r.manifests, Manifest{File: "samples.yaml", Number: i + 1, Object: object})
	}
	return r
}

// applied applies the samples in a bubble, and returns how long that took.
func applied(t *testing.T, m *moody, kind string, names ...string) (took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newSamples(t, m, kind, names...)
		begun := time.Now()
		err = r.applySamples(t.Context())
		took = time.Since(begun)
	})
	return took, err
}

// A sample that can never be valid is tried once, and the others are applied, or reported, all the
// same.
func TestBadSamplesAreAllReportedAtOnce(t *testing.T) {
	m := &moody{answers: map[string]int{"/bad": 422, "/worse": 400, "/worst": typedPatch, "/forbidden": 403}}
	took, err := applied(t, m, "ConfigMap", "good", "bad", "worse", "fine", "worst", "forbidden")
	if err == nil || took != 0 {
		t.Fatalf("after %v: %v", took, err)
	}
	for _, want := range []string{
		"4 of 6 samples could not be applied:\n", "applying ConfigMap bad (samples.yaml, document 2): answered 422", "\napplying ConfigMap worse (samples.yaml, document 3): answered 400",
		"\napplying ConfigMap worst (samples.yaml, document 5): failed to create typed patch object", "\napplying ConfigMap forbidden (samples.yaml, document 6): answered 403",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in\n%v", want, err)
		}
	}
	for part, times := range m.asked {
		if times != 1 {
			t.Errorf("%s was tried %d times", part, times)
		}
	}
}

// What a cluster is not ready for is tried again: a webhook that does not answer yet, a kind that
// is not served yet.
func TestSamplesAreTriedUntilTheClusterIsReady(t *testing.T) {
	m := &moody{
		answers: map[string]int{"/hooked": 500, "/slow": 503},
		until:   map[string]time.Duration{"/hooked": 5 * time.Second, "/slow": 7 * time.Second},
	}
	if took, err := applied(t, m, "ConfigMap", "hooked", "slow", "fine"); err != nil || took < 7*time.Second || took > 8*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
}

// The patience is for all samples together.
func TestSamplesAreGivenUpTogether(t *testing.T) {
	m := &moody{answers: map[string]int{"/first": 503, "/second": 503, "/third": 503}}
	took, err := applied(t, m, "ConfigMap", "first", "second", "third", "fine")
	if err == nil || took != retryFor || !strings.Contains(err.Error(), "3 of 4 samples could not be applied:\napplying ConfigMap first (samples.yaml, document 1): gave up after 30s: answered 503\napplying ConfigMap second (samples.yaml, document 2): answered 503\n") {
		t.Errorf("after %v: %v", took, err)
	}
}

func TestOneBadSampleIsReportedAlone(t *testing.T) {
	m := &moody{answers: map[string]int{"/bad": 422}}
	if _, err := applied(t, m, "ConfigMap", "fine", "bad"); err == nil || err.Error() != "applying ConfigMap bad (samples.yaml, document 2): answered 422" {
		t.Errorf("%v", err)
	}
}

// A sample that kubebuilder has written, and that is not filled in, is skipped, and the kind of another
// operator is not waited for. It is an error if it was named.
func TestPlaceholdersAreSkipped(t *testing.T) {
	dir := layOut(t, `
-- todo.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: todo}
# TODO(user): Add fields here
---
apiVersion: other.dev/v1
kind: Gadget
metadata: {name: of-another}
spec:
  # TODO(user): Add fields here
-- filled.yaml --
{apiVersion: v1, kind: ConfigMap, metadata: {name: filled}}
`)
	todo, filled := filepath.Join(dir, "todo.yaml"), filepath.Join(dir, "filled.yaml")
	for _, test := range []struct {
		files, named []string
		want         string // of the error, or of the output
	}{
		{[]string{filled, todo}, nil, "✓ samples        ConfigMap default/filled (0.0s)\n→ samples        2 skipped: they say TODO(user) and are not filled in; --samples names others; the first: applying ConfigMap todo"},
		{[]string{todo}, nil, "→ samples        2 skipped"},
		{[]string{filled, todo}, []string{filled, todo}, "2 of 3 samples could not be applied:"},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newSamples(t, &moody{answers: map[string]int{"/todo": 422}}, "ConfigMap")
			var out bytes.Buffer
			r.Samples, r.steps.out = test.named, &out
			for _, file := range test.files {
				read, err := ReadManifests(file)
				must(t, err)
				r.manifests = append(r.manifests, read...)
			}
			begun := time.Now()
			err := r.applySamples(t.Context())
			skipped := test.named == nil
			if waited := time.Since(begun) > 0; (err == nil) != skipped || waited == skipped || !strings.Contains(fmt.Sprint(out.String(), err), test.want) {
				t.Errorf("%v: %v after %v, with\n%s\nwant %q", test, err, time.Since(begun), out.String(), test.want)
			}
		})
	}
}

// Only a program that knows the variable of kubebuilder's, in a cluster of the run, serves no
// webhooks, unless the user has set it.
func TestWebhooksOfKubebuilderAreSwitchedOff(t *testing.T) {
	dir := layOut(t, `
-- knows/main.go --
package main

var webhooks = os.Getenv("ENABLE_WEBHOOKS") != "false"
-- other/main.go --
package main
`)
	for _, test := range []struct {
		dir, set string
		plane    plane
		want     string
	}{
		{"knows", "", (*memory.Cluster)(nil), "ENABLE_WEBHOOKS=false"},
		{"knows", "", nil, ""}, // a cluster that was there has certificates and configurations
		{"other", "", (*memory.Cluster)(nil), ""},
		{"knows", "true", (*memory.Cluster)(nil), ""},
	} {
		t.Setenv(webhooksVariable, test.set)
		if test.set == "" {
			must(t, os.Unsetenv(webhooksVariable))
		}
		var out bytes.Buffer
		project := &Project{Dir: filepath.Join(dir, test.dir)}
		if got := strings.Join(withoutWebhooks(test.plane, project, &steps{out: &out}), " "); got != test.want || strings.Contains(out.String(), "ENABLE_WEBHOOKS=false") != (test.want != "") {
			t.Errorf("%+v: got %q, want %q, with\n%s", test, got, test.want, out.String())
		}
	}
}

func TestMayPass(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	plain, pinned := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	pinned.SetResourceVersion("1")
	for _, test := range []struct {
		name string
		err  error
		obj  *unstructured.Unstructured
		want bool
	}{
		{"a kind that is not served yet", &meta.NoKindMatchError{}, plain, true},
		{"a webhook that does not answer yet", apierrors.NewInternalError(errors.New(`failed calling webhook "x": connection refused`)), plain, true},
		{"a server that is not ready", apierrors.NewServiceUnavailable("no"), plain, true},
		{"a conflict", apierrors.NewConflict(pods, "a", nil), plain, true},
		{"a conflict with a version that the manifest demands", apierrors.NewConflict(pods, "a", nil), pinned, false},
		{"an invalid value", apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), plain, false},
		{"a bad request", apierrors.NewBadRequest("no"), plain, false},
		{"a field that the schema does not have", apierrors.NewInternalError(errors.New("failed to create typed patch object (v1): .x: field not declared in schema")), plain, false},
		{"no permission", apierrors.NewForbidden(pods, "a", nil), plain, false},
		{"another error", errors.New("no"), plain, false},
	} {
		if got := mayPass(test.err, test.obj); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
