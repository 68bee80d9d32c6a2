// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

var (
	sequences = flag.Int("sequences", 10, "compare so many `sequences` of operations")
	from      = flag.Uint64("from", 1, "compare the sequences of this `seed` and of those after it")
	seed      = flag.Uint64("seed", 0, "compare only the sequence of this `seed`")
	length    = flag.Int("length", 50, "the `number` of operations in a sequence")
)

// target is one of the two servers.
type target struct {
	name   string
	client *http.Client
	host   string
}

func newTarget(t *testing.T, name string, config *rest.Config) *target {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	return &target{name: name, client: client, host: strings.TrimSuffix(config.Host, "/")}
}

// answer is an answer of a server.
type answer struct {
	Code int
	Body any
}

func (g *target) do(o operation) (answer, error) {
	request, err := http.NewRequest(o.Method, g.host+o.Path, strings.NewReader(o.Body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("User-Agent", "conformance/1")
	request.Header.Set("Accept", "application/json")
	if o.Type != "" {
		request.Header.Set("Content-Type", o.Type)
	}
	response, err := g.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{Code: response.StatusCode}
	if err := json.Unmarshal(data, &a.Body); err != nil {
		a.Body = string(data)
	}
	return a, nil
}

// run is one sequence on one server.
type run struct {
	*target
	namespace string
	versions  map[string][]string // resource versions of each object, in the order in which they were seen
	order     map[string]string   // resource versions by the order in which they were seen
	uids      map[string]string
}

func (g *target) begin(t *testing.T, namespace string) *run {
	t.Helper()
	a, err := g.do(operation{Method: "POST", Path: "/api/v1/namespaces", Type: "application/json", Body: `{"metadata":{"name":"` + namespace + `"}}`})
	if err != nil || a.Code != 201 {
		t.Fatalf("%s: creating namespace %s: %v %v", g.name, namespace, a, err)
	}
	return &run{target: g, namespace: namespace, versions: map[string][]string{}, order: map[string]string{}, uids: map[string]string{}}
}

// end deletes what a sequence leaves. There is no controller that empties its namespace, but the
// addresses of Services have to be free for the sequences that follow.
func (g *target) end(namespace string) {
	path := "/api/v1/namespaces/" + namespace
	for _, name := range names {
		service := path + "/services/" + name
		_, _ = g.do(operation{Method: "PATCH", Path: service, Type: "application/merge-patch+json", Body: `{"metadata":{"finalizers":null}}`})
		_, _ = g.do(operation{Method: "DELETE", Path: service})
	}
	_, _ = g.do(operation{Method: "DELETE", Path: path})
}

// fill replaces the placeholders of an operation.
func (r *run) fill(o operation) operation {
	path, _, _ := strings.Cut(o.Path, "?")
	for _, sub := range []string{"/status", "/scale", "/binding", "/eviction"} {
		path = strings.TrimSuffix(path, sub)
	}
	seen := r.versions[path]
	current, old := "1", "1"
	if len(seen) > 0 {
		current = seen[len(seen)-1]
	}
	if len(seen) > 1 {
		old = seen[len(seen)-2]
	}
	replace := strings.NewReplacer("{ns}", r.namespace, "{rv}", current, "{old}", old)
	o.Path, o.Body = replace.Replace(o.Path), replace.Replace(o.Body)
	return o
}

// note records the resource version that an object has now.
func (r *run) note(o operation, a answer) {
	path, query, _ := strings.Cut(o.Path, "?")
	m, ok := a.Body.(map[string]any)
	if !ok || a.Code >= 300 || strings.Contains(query, "dryRun") || m["kind"] == "Status" {
		return
	}
	metadata, _ := m["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	version, _ := metadata["resourceVersion"].(string)
	if name == "" || version == "" {
		return
	}
	for _, sub := range []string{"/status", "/scale", "/binding", "/eviction"} {
		path = strings.TrimSuffix(path, sub)
	}
	if o.Method == "POST" && m["kind"] != "Status" {
		path += "/" + name
	}
	path = strings.Replace(path, r.namespace, "{ns}", 1)
	if seen := r.versions[path]; len(seen) == 0 || seen[len(seen)-1] != version {
		r.versions[path] = append(seen, version)
	}
}

var (
	uidPattern     = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	timePattern    = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`)
	versionPattern = regexp.MustCompile(`\(\d+\)`)
	structPattern  = regexp.MustCompile(`^Invalid value: (?:null|[\[{].*[\]}]): `)     // Go values of internal types
	unsupported    = regexp.MustCompile(`^Unsupported value: .*: supported`)           // upstream, it is at times the Go value that has the field
	goDiff         = regexp.MustCompile(`(?s)^(Forbidden: .*?)\n *(?:@@|&|\S*{|\n).*`) // of Go values of internal types
	ipPattern      = regexp.MustCompile(`^10\.0\.\d+\.\d+$`)
)

// normalize removes from a value what differs between any two servers. Warnings, the order of
// several causes in one refusal, and how often one is repeated are not compared.
func (r *run) normalize(path string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok && strings.HasSuffix(fmt.Sprint(v["kind"]), "List") {
			delete(metadata, "resourceVersion")
		}
		out := map[string]any{}
		for k, child := range v {
			if k == "nodePort" || k == "healthCheckNodePort" {
				child = "<port>" // each server allocates its own
			}
			out[k] = r.normalize(path+"."+k, child)
		}
		if causes, ok := out["causes"].([]any); ok {
			// Their order is not defined, and their number depends on how many validators find the
			// error.
			slices.SortFunc(causes, func(a, b any) int { return strings.Compare(mustJSON(a), mustJSON(b)) })
			out["causes"] = slices.CompactFunc(causes, func(a, b any) bool { return mustJSON(a) == mustJSON(b) })
		}
		if entries, ok := out["managedFields"].([]any); ok {
			// They are ordered by time, in seconds, and a second may end between two requests.
			slices.SortFunc(entries, func(a, b any) int { return strings.Compare(mustJSON(a), mustJSON(b)) })
		}
		if message, _ := out["message"].(string); out["reason"] == "Invalid" {
			out["message"], _, _ = strings.Cut(message, " is invalid: ") // the rest is in the causes
		}
		if metadata, ok := out["metadata"].(map[string]any); ok && strings.HasSuffix(fmt.Sprint(out["kind"]), "List") {
			if token, _ := metadata["continue"].(string); token != "" {
				metadata["continue"] = "<token>"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = r.normalize(path+"[]", child)
		}
		return out
	case string:
		return r.normalizeText(path, v)
	}
	return v
}

// normalizeText is normalize for a string.
func (r *run) normalizeText(path, v string) string {
	v = strings.ReplaceAll(v, r.namespace, "{ns}")
	v = uidPattern.ReplaceAllString(v, "<uid>")
	switch {
	case timePattern.MatchString(v):
		return "<time>"
	case ipPattern.MatchString(v):
		return "<ip>"
	case strings.HasSuffix(path, ".resourceVersion"):
		return r.symbol(v)
	case strings.HasSuffix(path, ".message"):
		if _, text, ok := strings.Cut(v, `}": strict decoding error: `); ok {
			v = "Invalid value: <the patched object>: strict decoding error: " + text
		}
		v = unsupported.ReplaceAllString(v, "Unsupported value: <value>: supported")
		v = goDiff.ReplaceAllString(v, "$1")
		v = structPattern.ReplaceAllString(v, "Invalid value: <object>: ")
		v = versionPattern.ReplaceAllString(v, "(<version>)")
	}
	return v
}

// symbol is a resource version by the order in which it was seen.
func (r *run) symbol(version string) string {
	if _, ok := r.order[version]; !ok {
		r.order[version] = fmt.Sprintf("rv%d", len(r.order)+1)
	}
	return r.order[version]
}

// watch follows the events of a kind.
type watch struct {
	mu     sync.Mutex
	events []any
	cancel context.CancelFunc
	done   chan struct{}
}

func (r *run) watch(t *testing.T, collection string) *watch {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	path := strings.ReplaceAll(collection, "{ns}", r.namespace)
	request, err := http.NewRequestWithContext(ctx, "GET", r.host+path+"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", nil)
	must(t, err)
	request.Header.Set("Accept", "application/json")
	response, err := r.client.Do(request)
	for tries := 0; err == nil && response.StatusCode == http.StatusTooManyRequests && tries < 100; tries++ {
		_ = response.Body.Close()         //nolint:errcheck // the request is repeated
		time.Sleep(50 * time.Millisecond) // a kind that has just been defined is not ready yet
		response, err = r.client.Do(request)
	}
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%s: watching %s: %v %v", r.name, path, response, err)
	}
	w := &watch{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer response.Body.Close() //nolint:errcheck // only read from
		lines := bufio.NewReader(response.Body)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			var event map[string]any
			if json.Unmarshal(bytes.TrimSpace(line), &event) != nil || event["type"] == "BOOKMARK" {
				continue
			}
			w.mu.Lock()
			w.events = append(w.events, event)
			w.mu.Unlock()
		}
	}()
	return w
}

// wait returns the events once there are that many, or after some time.
func (w *watch) wait(n int) []any {
	timeout := time.After(2 * time.Second)
	for ticker := time.NewTicker(5 * time.Millisecond); ; {
		w.mu.Lock()
		events := slices.Clone(w.events)
		w.mu.Unlock()
		if len(events) >= n {
			return events
		}
		select {
		case <-ticker.C:
		case <-timeout:
			return events
		}
	}
}

// difference is an operation that the two servers answered differently.
type difference struct {
	step      int
	operation operation
	text      string
}

// compare runs a sequence on both servers.
func compare(t *testing.T, real, memory *target, namespace string, list []operation) *difference {
	t.Helper()
	a, b := real.begin(t, namespace), memory.begin(t, namespace)
	defer real.end(namespace)
	watchedA, watchedB := map[string]*watch{}, map[string]*watch{}
	for _, s := range subjects {
		watchedA[s.collection], watchedB[s.collection] = a.watch(t, s.collection), b.watch(t, s.collection)
		defer watchedA[s.collection].cancel()
		defer watchedB[s.collection].cancel()
	}
	for i, o := range list {
		inA, inB := a.fill(o), b.fill(o)
		fromA, err := a.do(inA)
		must(t, err)
		fromB, err := b.do(inB)
		must(t, err)
		a.note(inA, fromA)
		b.note(inB, fromB)
		got := answer{fromB.Code, b.normalize("", fromB.Body)}
		text := cmp.Diff(answer{fromA.Code, a.normalize("", fromA.Body)}, got)
		// The real server may answer a list of any version from a cache that is stale for a moment.
		for end := time.Now().Add(2 * time.Second); text != "" && strings.HasSuffix(o.Path, "resourceVersion=0") && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
			if fromA, err = a.do(inA); err != nil {
				t.Fatal(err)
			}
			text = cmp.Diff(answer{fromA.Code, a.normalize("", fromA.Body)}, got)
		}
		if text != "" {
			return &difference{i, o, "(-real +memory)\n" + text}
		}
	}
	for _, s := range subjects {
		want, got := watchedA[s.collection].wait(0), watchedB[s.collection].wait(0)
		for end := time.Now().Add(2 * time.Second); len(want) != len(got) && time.Now().Before(end); {
			want, got = watchedA[s.collection].wait(len(got)), watchedB[s.collection].wait(len(want))
		}
		x, y := a.normalize("", want), b.normalize("", got)
		if text := cmp.Diff(x, y); text != "" {
			return &difference{len(list) - 1, operation{Method: "WATCH", Path: s.collection}, "(-real +memory)\n" + text}
		}
	}
	return nil
}

// shared is the real server. The tests use a namespace each, and objects with names of their own
// outside of namespaces.
var shared = planetest.Shared{Options: controlplane.Options{CRDs: []string{"crds.yaml"}}}

func TestMain(m *testing.M) {
	if err := os.Unsetenv(planetest.Variable); err != nil { // controllers would write, too
		panic(err)
	}
	os.Exit(shared.Main(m))
}

// definitions returns the kinds of the tests.
func definitions(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{"crds.yaml"}, ErrorIfPathMissing: true}
	must(t, envtest.ReadCRDFiles(&options))
	return options.CRDs
}

// The API server in memory does what the real one does.
func TestConformance(t *testing.T) {
	rings.Test(t, "starts a control plane")
	crds, plane := definitions(t), shared.ForTest(t)
	real := newTarget(t, "real", plane.Config())
	first, last := *from, *from+uint64(*sequences)-1
	if *seed != 0 {
		first, last = *seed, *seed
	}
	differences := 0
	for n := first; n <= last; n++ {
		list := sequence(n, *length)
		d := compare(t, real, newMemory(t, crds), fmt.Sprintf("sequence-n%d", n), list)
		if d == nil {
			continue
		}
		differences++
		list, d = shrink(t, real, crds, n, list[:d.step+1], d)
		var text strings.Builder
		for _, o := range list {
			text.WriteString("  " + o.String() + "\n")
		}
		t.Errorf("seed %d, %s:\n%s\nafter:\n%sagain: go test ./internal/sim/apiserver/conformance -run TestConformance -seed %d", n, d.operation, d.text, text.String(), n)
		if differences >= 6 {
			t.Fatal("no more are looked for")
		}
	}
	t.Logf("%d sequences of %d operations", last-first+1, *length)
}

func newMemory(t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition) *target {
	t.Helper()
	server := apiserver.New(apiserver.Options{})
	must(t, server.Install(crds...))
	config := server.Config()
	config.Transport = withoutControllers{server}
	return newTarget(t, "memory", config)
}

// withoutControllers is the server in memory as the real one is here: kube-apiserver alone, without
// a garbage collector and the controllers that protect volumes.
type withoutControllers struct{ *apiserver.Server }

func (s withoutControllers) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := apiserver.ParseRequest(r)
	if err != nil {
		return nil, err
	}
	if request.Verb == "watch" {
		return s.Server.RoundTrip(r)
	}
	return s.Serve(request).HTTP(r), nil
}

// shrink removes operations as long as a difference remains.
func shrink(t *testing.T, real *target, crds []*apiextensionsv1.CustomResourceDefinition, seed uint64, list []operation, d *difference) ([]operation, *difference) {
	t.Helper()
	for i := len(list) - 2; i >= 0; i-- {
		shorter := slices.Delete(slices.Clone(list), i, i+1)
		if again := compare(t, real, newMemory(t, crds), fmt.Sprintf("sequence-n%d-x%d", seed, i), shorter); again != nil {
			list, d = shorter[:min(len(shorter), again.step+1)], again
			i = min(i, len(list)-1)
		}
	}
	return list, d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
