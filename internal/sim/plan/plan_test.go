// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const canary = "canary-7261"

// world is a cluster with three apps, and an operator that has made their Deployments.
type world struct {
	t       *testing.T
	cluster *memory.Cluster
	client  client.Client

	mu      sync.Mutex // guards the fields below
	writes  []string   // requests that are not reads
	refused string     // a resource that may not be read
}

func newWorld(t *testing.T, arguments ...string) *world {
	t.Helper()
	rings.Test(t, "it runs an operator as a process")
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	w := &world{t: t}
	var err error
	if w.cluster, err = memory.Start(memory.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if w.client, err = client.New(w.cluster.Config(), client.Options{}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		w.create(app(fmt.Sprintf("app-%d", i), "v1"))
	}
	stop := w.run(arguments...)
	w.eventually("the Deployments are available", func() bool {
		var list appsv1.DeploymentList
		w.must(w.client.List(t.Context(), &list))
		return len(list.Items) == 3 && !slices.ContainsFunc(list.Items, func(d appsv1.Deployment) bool { return d.Status.AvailableReplicas != 1 })
	})
	stop()
	return w
}

func app(name, image string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "yes"}},
		Data:       map[string]string{"image": "app:" + image, "password": canary + name},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(obj client.Object) {
	w.t.Helper()
	w.must(w.client.Create(w.t.Context(), obj))
}

// run runs the operator on the cluster itself.
func (w *world) run(arguments ...string) (stop func()) {
	w.t.Helper()
	return plantest.Start(w.t, w.cluster.Kubeconfig(), arguments...)
}

func (w *world) eventually(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not within a minute: %s", what)
		}
	}
}

// options are those of a plan for the cluster, which records writes to it.
func (w *world) options(arguments ...string) plan.Options {
	w.t.Helper()
	config := w.cluster.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &watched{w, next} })
	source, err := plan.NewCluster(config)
	w.must(err)
	return plan.Options{
		Source: source, Operator: plantest.Program(w.t, arguments...), Namespace: "default", Supervisor: plantest.Supervisor(w.t),
		Quiet: 2 * time.Second, Timeout: time.Minute, Progress: func(string) {}, Log: func(line string) { w.t.Log(line) },
	}
}

type watched struct {
	*world
	next http.RoundTripper
}

func (w *watched) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method != http.MethodGet {
		w.writes = append(w.writes, r.Method+" "+r.URL.Path)
	}
	if w.refused != "" && strings.HasSuffix(r.URL.Path, "/"+w.refused) {
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"secrets is forbidden","code":403}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
	return w.next.RoundTrip(r)
}

func (w *world) plan(o plan.Options) *plan.Plan {
	w.t.Helper()
	before := w.cluster.Objects()
	p, err := plan.For(w.t.Context(), o)
	w.must(err)
	if diff := cmp.Diff(before, w.cluster.Objects()); diff != "" || len(w.writes) > 0 {
		w.t.Errorf("the cluster was written to: %v\n%s", w.writes, diff)
	}
	return p
}

func change(objects ...client.Object) []run.Manifest {
	var list []run.Manifest
	for _, obj := range objects {
		data := &unstructured.Unstructured{Object: map[string]any{}}
		cm := obj.(*corev1.ConfigMap) //nolint:errcheck // all are
		data.SetAPIVersion("v1")
		data.SetKind("ConfigMap")
		data.SetName(cm.Name)
		data.SetLabels(cm.Labels)
		for name, value := range cm.Data {
			_ = unstructured.SetNestedField(data.Object, value, "data", name) //nolint:errcheck // data is a map
		}
		list = append(list, run.Manifest{File: "change.yaml", Number: len(list) + 1, Object: data})
	}
	return list
}

// described returns changes without the fields of statuses.
func described(changes []plan.Change) []string {
	var lines []string
	for _, c := range changes {
		if c.By == plan.Others {
			continue
		}
		line := fmt.Sprintf("%s %s by %s", c.Action, c, c.By)
		for _, f := range c.Fields {
			if !strings.HasPrefix(f.Path, "status.") && !strings.HasPrefix(f.Path, "metadata.annotations") {
				line += fmt.Sprintf(" %s=%v", f.Path, f.To)
			}
		}
		if c.Restart {
			line += " restarts"
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func TestNothingIsPlannedForAnIdleOperator(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options())
	if !p.Nothing() || p.Incomplete() {
		t.Errorf("got %+v, want a plan that is complete and empty", p)
	}
	if !hasNotWorked(p) {
		t.Errorf("assumed %q: want one that the operator has only listed and watched", p.Assumptions)
	}
}

// hasNotWorked reports whether a plan says that the operator may not have begun to work.
func hasNotWorked(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Assumptions, func(text string) bool { return strings.Contains(text, "only listed and watched") })
}

// What a plan says is what happens when the change is made.
func TestPlanIsWhatHappens(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.Change = change(app("app-1", "v2"), app("app-3", "v1"))
	p := w.plan(o)
	want := []string{
		"create ConfigMap default/app-3 by user",
		"create Deployment default/app-3 by operator",
		"update ConfigMap default/app-1 by user data.image=app:v2",
		"update Deployment default/app-1 by operator spec.template.spec.containers[app].image=app:v2 restarts",
	}
	if diff := cmp.Diff(want, described(p.Changes)); diff != "" || len(p.AtStart) > 0 {
		t.Errorf("the plan (-want +got), at start %v:\n%s", p.AtStart, diff)
	}
	if slices.ContainsFunc(p.Assumptions, func(text string) bool { return strings.Contains(text, "after the change") }) {
		t.Errorf("assumed %q of an operator that has worked", p.Assumptions)
	}

	stop := w.run()
	defer stop()
	cm := &corev1.ConfigMap{}
	w.must(w.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "app-1"}, cm))
	cm.Data["image"] = "app:v2"
	w.must(w.client.Update(t.Context(), cm))
	w.create(app("app-3", "v1"))
	w.eventually("what was planned has happened", func() bool {
		var list appsv1.DeploymentList
		w.must(w.client.List(t.Context(), &list))
		images := map[string]string{}
		for _, d := range list.Items {
			images[d.Name] = d.Spec.Template.Spec.Containers[0].Image
		}
		return cmp.Equal(images, map[string]string{"app-0": "app:v1", "app-1": "app:v2", "app-2": "app:v1", "app-3": "app:v1"})
	})
}

// A field that the kind does not have is refused, as "kubectl apply" does it.
func TestUnknownFieldOfAChange(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.Change = change(app("app-1", "v2"))
	o.Change[0].Object.Object["dta"] = map[string]any{"image": "app:v3"}
	_, err := plan.For(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), `strict decoding error: unknown field "dta"`) || !strings.Contains(err.Error(), "change.yaml") || strings.Contains(err.Error(), "canary") {
		t.Errorf("got the error %v", err)
	}
	var said []string
	o.Progress = func(text string) { said = append(said, text) }
	if _, err := plan.Compare(t.Context(), o, o.Operator); err != nil { // of samples, it is left out
		t.Fatal(err)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, `unknown field "dta"; what is unknown is left out`) {
		t.Errorf("it said %q", text)
	}
}

func TestWhatIsDeletedWithItsOwner(t *testing.T) {
	w := newWorld(t)
	o := w.options()
	o.Delete = []plan.Object{{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default", Name: "app-0"}}
	kinds := map[string]int{}
	for _, c := range w.plan(o).Changes {
		if c.Action != plan.Delete {
			t.Errorf("%s: %s, want only deletions", c, c.Action)
		}
		kinds[string(c.By)+" "+c.Kind]++
	}
	want := map[string]int{"user ConfigMap": 1, "garbage-collector Deployment": 1, "garbage-collector ReplicaSet": 1, "garbage-collector Pod": 1}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

// A namespace takes with it what is in it, also of kinds that the operator has never asked for.
func TestWhatIsDeletedWithItsNamespace(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "password"}})
	w.eventually("the namespace has its ServiceAccount", func() bool {
		return w.client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "default"}, &corev1.ServiceAccount{}) == nil
	})
	o := w.options()
	o.Delete = []plan.Object{{Resource: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "shop"}}
	want := []string{
		"delete Namespace shop by user",
		"delete Secret shop/password by garbage-collector", "delete ServiceAccount shop/default by garbage-collector",
	}
	if diff := cmp.Diff(want, described(w.plan(o).Changes)); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestWhatMayNotBeReadIsNamed(t *testing.T) {
	w := newWorld(t)
	w.refused = "secrets"
	o := w.options("reads-secrets")
	o.Timeout = 20 * time.Second // to start takes some of it on a busy machine
	p := w.plan(o)
	if !slices.Contains(p.Unknown, "cannot read secrets: secrets is forbidden") {
		t.Errorf("unknown: %q, want secrets", p.Unknown)
	}
	w.refused = ""
	if p := w.plan(w.options("reads-secrets")); p.Incomplete() || !p.Nothing() {
		t.Errorf("with the right to read secrets: %+v, want nothing", p)
	}
}

// What only players read is no reason to call a plan incomplete.
func TestWhatOnlyPlayersRead(t *testing.T) {
	w := newWorld(t)
	w.refused = "nodes"
	p := w.plan(w.options())
	if p.Incomplete() || !slices.ContainsFunc(p.Assumptions, func(text string) bool { return strings.Contains(text, "without nodes") }) {
		t.Errorf("unknown %q, assumed %q: want nodes to be assumed", p.Unknown, p.Assumptions)
	}
}

func TestNothingOutsideIsReached(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options("calls-outside"))
	if diff := cmp.Diff([]string{"database.example.com"}, p.Outside); diff != "" || !p.Incomplete() {
		t.Errorf("incomplete %t, outside (-want +got):\n%s", p.Incomplete(), diff)
	}
}

// What an operator does because the copy runs no containers is no plan.
func TestCommandsInContainersAreNotKnown(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options("executes"))
	const want = "what exec of pods would have answered: the copy does not have it, and refused 1 request"
	if !slices.Contains(p.Unknown, want) || len(p.Unknown) != 1 {
		t.Errorf("unknown: %q, want %q alone", p.Unknown, want)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	w := newWorld(t, "keeps-passwords")
	o := w.options("keeps-passwords")
	changed := app("app-0", "v1")
	changed.Data = map[string]string{"image": "app:v1", "password": "other"}
	o.Change = change(changed)
	var text bytes.Buffer
	p := w.plan(o)
	w.must(p.Write(&text, plan.Style{All: true}))
	if !strings.Contains(text.String(), `data.password: "(hidden)" → "(hidden)"`) {
		t.Errorf("the change of the Secret is missing:\n%s", text.String())
	}
	for _, c := range p.Changes {
		if c.Kind == "Secret" && strings.Contains(fmt.Sprint(c.Fields), canary) {
			t.Errorf("a value of a Secret: %v", c.Fields)
		}
	}
}

func TestWhatIsWrittenAgainAndAgain(t *testing.T) {
	w := newWorld(t)
	o := w.options("flaps")
	o.Quiet = 5 * time.Second
	p := w.plan(o)
	if len(p.AtStart) != 1 || p.AtStart[0].Name != "app-0" || p.AtStart[0].Repeats == 0 {
		t.Errorf("got %v, want app-0 alone to be written again and again", p.AtStart)
	}
}

func TestCompareVersions(t *testing.T) {
	w := newWorld(t)
	p, err := plan.Compare(t.Context(), w.options(), plantest.Program(t))
	w.must(err)
	if !p.Nothing() {
		t.Errorf("the same version: %v, want nothing", p.Changes)
	}
	p, err = plan.Compare(t.Context(), w.options(), plantest.Program(t, "adds-a-variable"))
	w.must(err)
	if n := plan.Count(p.Changes); n.Restart != 3 || n.Update != 3 {
		t.Errorf("got %+v, want 3 restarts:\n%v", n, p.Changes)
	}
	broken, err := p.Check([]string{"no-restart", "no-delete=PersistentVolumeClaim"})
	if w.must(err); len(broken) != 3 {
		t.Errorf("the policy is broken by %q, want the 3 restarts", broken)
	}
}

// An operator that is not the leader does nothing: the Lease of the version before must not keep the
// next one from working.
func TestCompareVersionsThatElectALeader(t *testing.T) {
	w := newWorld(t)
	p, err := plan.Compare(t.Context(), w.options("elects-in", "default"), plantest.Program(t, "elects-in", "default", "adds-a-variable"))
	w.must(err)
	if n := plan.Count(p.Changes); n.Restart != 3 {
		t.Errorf("got %+v, want 3 restarts:\n%v", n, p.Changes)
	}
}

func TestOperatorThatCannotBecomeTheLeader(t *testing.T) {
	w := newWorld(t)
	_, err := plan.For(t.Context(), w.options("elects-in", "missing"))
	if err == nil || !strings.Contains(err.Error(), `in the namespace "missing", which does not exist`) {
		t.Errorf("got %v, want an error that names the namespace", err)
	}
}

// What an operator writes at random at each start is no difference between versions.
func TestCompareVersionsThatWriteAtRandom(t *testing.T) {
	w := newWorld(t)
	p, err := plan.Compare(t.Context(), w.options("marks-its-start"), plantest.Program(t, "marks-its-start", "adds-a-variable"))
	w.must(err)
	for _, c := range p.Changes {
		if slices.ContainsFunc(c.Fields, func(f plan.Field) bool { return strings.Contains(f.Path, "mark") }) {
			t.Errorf("%s: %v, want no change of the mark", c, c.Fields)
		}
	}
	if n := plan.Count(p.Changes); n.Restart != 3 || n.Update != 3 {
		t.Errorf("got %+v, want 3 restarts:\n%v", n, p.Changes)
	}
}
