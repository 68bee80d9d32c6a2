// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/internal/show/view"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/journal"
)

var rwexternals = schema.GroupVersionResource{Group: "demo.ctrlkit.dev", Version: "v1", Resource: "rwexternals"}

// A demo is an API server with RWExternals default/waits, which is not ready, and default/divide,
// which is.
type demo struct {
	kubeconfig string
	config     *rest.Config
	dynamic    dynamic.Interface
	resources  dynamic.ResourceInterface
	refuse     string // requests with this in their path are refused, if it is not empty
}

func newDemo(t *testing.T) *demo {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	text, err := os.ReadFile("../../examples/03_rwexternal/config/crd/bases/demo.ctrlkit.dev_rwexternals.yaml")
	must(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	must(t, yaml.Unmarshal(text, &crd))
	must(t, server.Install(&crd))
	client, err := dynamic.NewForConfig(server.Config())
	must(t, err)
	d := &demo{
		kubeconfig: filepath.Join(t.TempDir(), "config"), config: server.Config(), dynamic: client, resources: client.Resource(rwexternals).Namespace("default"),
	}
	d.create(t, "waits", condition("Ready", "False", "SecretNotFound"), condition("Reconciling", "True", "SecretNotFound"))
	d.create(t, "divide", condition("Ready", "True", "Ready"))

	proxy := &httputil.ReverseProxy{Transport: server, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", "memory"
	}}
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.refuse != "" && strings.Contains(r.URL.Path, d.refuse) {
			http.Error(w, "refused by the test", http.StatusForbidden)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // the command ends with connections that it has not used
	secure.StartTLS()
	t.Cleanup(secure.Close)
	writeKubeconfig(t, d.kubeconfig, secure.URL)
	return d
}

func listen(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func condition(kind, status, reason string) any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "message": "", "observedGeneration": int64(1), "lastTransitionTime": "2026-01-01T00:00:00Z",
	}
}

func (d *demo) create(t *testing.T, name string, conditions ...any) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "demo.ctrlkit.dev/v1", "kind": "RWExternal", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"inputSecret": "missing", "outputSecret": map[string]any{"name": "out"}},
	}}
	created, err := d.resources.Create(t.Context(), obj, metav1.CreateOptions{})
	must(t, err)
	created.Object["status"] = map[string]any{"conditions": conditions}
	if _, err := d.resources.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// run runs "ctrlkit explain" and returns its output, its error and its exit code.
func (d *demo) run(t *testing.T, args ...string) (output string, code int, err error) {
	t.Helper()
	var text strings.Builder
	cmd := New()
	cmd.SetArgs(append([]string{"explain", "--kubeconfig", d.kubeconfig}, args...))
	cmd.SetOut(&text)
	cmd.SetErr(io.Discard)
	err = cmd.ExecuteContext(t.Context())
	return text.String(), exitCode(err), err
}

// operator returns a handler that knows of the RWExternal default/waits, and of default/gone, which
// does not exist.
func explained(t *testing.T) http.Handler {
	t.Helper()
	ring := journal.NewRing(journal.RingOptions{})
	for _, name := range []string{"waits", "gone"} {
		object := journal.Object{Group: "demo.ctrlkit.dev", Kind: "RWExternal", Namespace: "default", Name: name}
		run := journal.NewRun(ring, "1", "rwexternal", object)
		run.Note(t.Context(), journal.Started{Finalizer: "demo.ctrlkit.dev/rwexternal"})
		wait := journal.Outcome{Waits: []journal.Wait{{For: "Secret default/missing"}}}
		run.Note(t.Context(), journal.StepEnded{Step: "ReadInput", Phase: journal.PhaseDo, Outcome: wait})
		run.Note(t.Context(), journal.Finished{Result: journal.ResultWaiting, Outcome: wait})
	}
	mux := http.NewServeMux()
	mux.Handle(explanation.Path, explanation.Handler(ring))
	return mux
}

func TestExplain(t *testing.T) {
	t.Setenv("CTRLKIT_ENDPOINT", "")
	d := newDemo(t)
	answers := func(code int, text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, code) })
	}
	const steps = "ReadInput waits for Secret default/missing"
	for _, test := range []struct {
		name     string
		operator http.Handler // nil for --endpoint none
		args     string
		code     int
		want     string // a part of the output, or of the error
	}{
		{"by kind", explained(t), "rwexternal/waits", 1, steps},
		{"by plural and group", explained(t), "rwexternals.demo.ctrlkit.dev/waits", 1, steps},
		{"by plural, version and group", explained(t), "rwexternals.v1.demo.ctrlkit.dev/waits", 1, steps},
		{"by Kind in two words", explained(t), "RWExternal waits -n default", 1, steps},
		{"ready", nil, "rwexternal/divide", 0, "RWExternal default/divide has been ready for "},
		{"without an operator", nil, "rwexternal/waits", 1, "Steps and causes are not known: the operator was not asked; set --endpoint to where it serves its metrics\n"},
		{"not known to the operator", explained(t), "rwexternal/divide", 0, "says: nothing is known of RWExternal default/divide: "},
		{"an operator that does not serve", http.NotFoundHandler(), "rwexternal/divide", 0, "serves no explanations: an operator needs operator.Observe"},
		{"not allowed", answers(http.StatusForbidden, "no"), "rwexternal/divide", 0, "answers 403 Forbidden: set CTRLKIT_TOKEN or --token-file to a token that allows to get /debug/ctrlkit/explain"},
		{"broken", answers(http.StatusInternalServerError, "no"), "rwexternal/divide", 0, "answers 500 Internal Server Error: no\n"},
		{"not JSON", answers(http.StatusOK, "<html>"), "rwexternal/divide", 0, "is not an operator of this version of ctrlkit: invalid character"},
		{"other JSON", answers(http.StatusOK, "{}"), "rwexternal/divide", 0, "is not an operator of this version of ctrlkit: it was asked for RWExternal divide"},
		{"gone, but known to the operator", explained(t), "rwexternal/gone", 1, "RWExternal default/gone does not exist"},
		{"neither there nor known", explained(t), "rwexternal/nothing", 1, "RWExternal default/nothing does not exist"},
		{"cluster-scoped", nil, "namespace/nothing", 1, "Namespace nothing does not exist"},
		{"in another namespace", nil, "rwexternal/divide -n other", 1, "RWExternal other/divide does not exist"},
		{"an unknown kind", nil, "elephant/a", 1, `finding out what "elephant" is: `},
	} {
		t.Run(test.name, func(t *testing.T) {
			endpoint := noEndpoint
			if test.operator != nil {
				endpoint = listen(t, test.operator)
			}
			output, code, err := d.run(t, append(strings.Fields(test.args), "--endpoint", endpoint)...)
			if err != nil {
				output += err.Error()
			}
			if code != test.code || !strings.Contains(output, test.want) {
				t.Errorf("exit code %d, want %d with %q:\n%s", code, test.code, test.want, output)
			}
		})
	}
}

// Of several kinds of a name, the answer says which was taken, and how to name another one.
func TestExplainSaysWhichOfSeveralKinds(t *testing.T) {
	d := newDemo(t)
	definitions := d.dynamic.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	other, err := definitions.Get(t.Context(), "rwexternals.demo.ctrlkit.dev", metav1.GetOptions{})
	must(t, err)
	again := &unstructured.Unstructured{Object: map[string]any{"apiVersion": other.GetAPIVersion(), "kind": other.GetKind(), "spec": other.Object["spec"]}}
	again.SetName("rwexternals.z.example.com")
	must(t, unstructured.SetNestedField(again.Object, "z.example.com", "spec", "group"))
	if _, err := definitions.Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const want = "It was looked for among rwexternals.demo.ctrlkit.dev; for another kind of this name: ctrlkit explain rwexternals.z.example.com/"
	for args, named := range map[string]string{
		"rwexternal/divide": want + "divide", "rwexternals nothing": want + "nothing", "rwexternal.demo.ctrlkit.dev/divide": "", "namespace/nothing": "",
	} {
		output, _, err := d.run(t, append(strings.Fields(args), "--endpoint", noEndpoint)...)
		if err != nil {
			output += err.Error()
		}
		if strings.Contains(output, "among") != (named != "") || !strings.Contains(output, named) {
			t.Errorf("explain %s, want %q:\n%s", args, named, output)
		}
	}
}

func TestExplainNamesAnEndpointThatDoesNotAnswer(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	t.Setenv("CTRLKIT_ENDPOINT", closed.URL)
	output, code, _ := newDemo(t).run(t, "rwexternal/divide")
	want := "Steps and causes are not known: the operator does not answer at " + closed.URL + "; set --endpoint to where it serves its metrics (dial tcp"
	if code != 0 || !strings.Contains(output, want) {
		t.Errorf("exit code %d, want 0 with %q:\n%s", code, want, output)
	}
}

// With an operator or an API server that accepts connections and never answers, the other one is
// explained within a second.
func TestExplainBesideOneThatIsFrozen(t *testing.T) {
	rings.Test(t, "takes a second")
	t.Parallel()
	ended := make(chan struct{})
	frozen := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	t.Cleanup(func() { close(ended) }) // before the server is closed
	d := newDemo(t)
	alone := filepath.Join(t.TempDir(), "config")
	writeKubeconfig(t, alone, frozen)
	answers := listen(t, explained(t))
	for _, test := range []struct{ name, kubeconfig, endpoint, want string }{
		{"the operator", d.kubeconfig, frozen, "RWExternal default/waits has not been ready for"},
		{"the API server", alone, answers, "ReadInput waits for Secret default/missing"},
	} {
		d.kubeconfig = test.kubeconfig
		began := time.Now()
		output, _, err := d.run(t, "rwexternal/waits", "--endpoint", test.endpoint)
		if took := time.Since(began); took > 2*time.Second || !strings.Contains(output, test.want) {
			t.Errorf("%s is frozen: after %v: %v, want %q:\n%s", test.name, took, err, test.want, output)
		}
	}
}

// Beside an operator that accepts connections and never answers, the API server is asked after a
// second. An operator that is slow only is waited for.
func TestExplainAllBesideOneThatIsFrozen(t *testing.T) {
	rings.Test(t, "takes a second")
	ended := make(chan struct{})
	frozen := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	t.Cleanup(func() { close(ended) }) // before the server is closed
	slow := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, view.SummaryPath) {
			time.Sleep(patience + time.Second/2)
			_, _ = io.WriteString(w, `{"kinds":[{"kind":"Slow","total":7}]}`)
		}
	}))
	d := newDemo(t)
	for _, test := range []struct {
		endpoint string
		want     []string
	}{
		{frozen, []string{"RWExternal.demo.ctrlkit.dev: ", "the operator does not answer at " + frozen + ": no answer within"}},
		{slow, []string{"Slow: 7"}},
	} {
		t.Setenv("CTRLKIT_ENDPOINT", test.endpoint)
		output, _, err := d.run(t, "--all")
		for _, want := range test.want {
			if !strings.Contains(output, want) {
				t.Errorf("%v, want %q:\n%s", err, want, output)
			}
		}
	}
	if _, _, err := d.run(t, "--all", "--endpoint", frozen); err == nil || !strings.Contains(err.Error(), ": no answer within") {
		t.Errorf("got the error %v", err)
	}
}

func TestExplainInJSON(t *testing.T) {
	endpoint := listen(t, explained(t))
	output, code, err := newDemo(t).run(t, "rwexternal/waits", "-o", "json", "--endpoint", endpoint)
	var x explanation.Explanation
	if err := json.Unmarshal([]byte(output), &x); err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	if code != 1 || err == nil || err.Error() != "" || x.Object.GetName() != "waits" || x.Resource != "rwexternals.demo.ctrlkit.dev" ||
		x.Report.Controllers[0].Steps[0].Waits[0].For != "Secret default/missing" {
		t.Errorf("exit code %d, error %v:\n%s", code, err, output)
	}
}

// A token is not sent over a connection that others can read.
func TestExplainSendsATokenOverTLSOnly(t *testing.T) {
	d := newDemo(t)
	var got string
	note := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") })
	plain, secure := httptest.NewServer(note), httptest.NewUnstartedServer(note)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that goes away is expected below
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for _, test := range []struct{ args, want string }{
		{"--endpoint " + plain.URL, ""},
		{"--token mine --endpoint " + plain.URL, "no request"},
		{"--insecure --endpoint " + secure.URL, "Bearer of-the-kubeconfig"},
		{"--insecure --token mine --endpoint " + secure.URL, "Bearer mine"},
	} {
		got = "no request"
		_, _, _ = d.run(t, append([]string{"rwexternal/divide"}, strings.Fields(test.args)...)...)
		if got != test.want {
			t.Errorf("%s: Authorization is %q, want %q", test.args, got, test.want)
		}
	}
	if _, code, err := d.run(t, "rwexternal/divide", "--endpoint", plain.URL, "--token", "mine"); code != 2 || err == nil || !strings.Contains(err.Error(), "a token is sent over TLS only") {
		t.Errorf("with a token for an endpoint without TLS: exit code %d, %v", code, err)
	}
	output, _, _ := d.run(t, "rwexternal/divide", "--endpoint", secure.URL)
	if want := "the operator does not answer at " + secure.URL; !strings.Contains(output, want) || !strings.Contains(output, "certificate") {
		t.Errorf("with an unknown certificate:\n%s", output)
	}
}

func TestExplainEndsWithItsContext(t *testing.T) {
	d := newDemo(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cmd := New()
	cmd.SetArgs([]string{"explain", "--kubeconfig", d.kubeconfig, "rwexternal/divide"})
	cmd.SetOut(io.Discard)
	if err := cmd.ExecuteContext(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
}

// A shell completes custom kinds with their groups, and the names of objects.
func TestExplainCompletes(t *testing.T) {
	rings.Test(t, "starts a server")
	d := newDemo(t)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{""}, "\nrwexternal.demo.ctrlkit.dev\n"}, {[]string{""}, "\ndeployment\n"},
		{[]string{"rwexternal/"}, "rwexternal/divide\nrwexternal/waits\n:4\n"},
		{[]string{"rwexternal.demo.ctrlkit.dev", ""}, "divide\nwaits\n:4\n"},
		{[]string{"nothing/"}, ":4\n"}, {[]string{"rwexternal", "waits", ""}, ":4\n"},
	} {
		args := append([]string{"__complete", "explain", "--kubeconfig", d.kubeconfig}, tt.args...)
		if stdout, _, err := execute(t, "", args...); err != nil || !strings.Contains(stdout, tt.want) || strings.Contains(tt.want, ":") && stdout != tt.want {
			t.Errorf("%q: got %s, %v, want %s", tt.args, stdout, err, tt.want)
		}
	}
}
