// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/actor"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/internal/trace"
)

// stage is a run with a server and an injector, in which everything else is a recorder.
type stage struct {
	*Injector
	recorder
	seen []string // the changes of objects as every watcher sees them
}

// recorder records what it is asked to do: it is a process, a turn, the schedule, a watch, a judge
// and an external system in one.
type recorder struct {
	did    []string
	judged []string // what the judge has seen
	active int      // how often something has happened by which idleness is measured
	later  []func() // what waits for its time
	idle   []func() // what waits until everything is idle
}

// newStage returns the stage of a plan. On it are a ConfigMap, a Secret and a Pod of a user.
func newStage(t *testing.T, plan string) *stage {
	t.Helper()
	p, err := fault.ParsePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{}
	tr := trace.New()
	c := cluster.New(apiserver.New(apiserver.Options{Now: time.Now, Seed: 1}), tr, func() {})
	systems := map[string]external.System{"buckets": s}
	actors := actor.New(c, systems, s, s, tr)
	s.Injector = New(Options{
		Plan: p, Cluster: c, Actors: actors, Judge: s, Watches: (*watchesOf)(&s.recorder), Time: s, Active: func() { s.active++ }, Trace: tr,
	})
	c.Server.OnChange(func(change apiserver.Change) {
		c.Changed(change)
		actors.Changed(change)
		s.seen = append(s.seen, change.Actor+" "+change.Type)
	})
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"},"data":{"a":"1"}}`)
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/secrets", `{"metadata":{"name":"s"}}`)
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	c.NotePrerequisites()
	s.seen = nil
	return s
}

func (r *recorder) note(format string, args ...any) {
	r.did = append(r.did, fmt.Sprintf(format, args...))
}

func (r *recorder) Crash()                        { r.note("crash") }
func (r *recorder) Stop()                         { r.note("stop") }
func (r *recorder) StartSecond()                  { r.note("start a second one") }
func (r *recorder) JumpClock(by time.Duration)    { r.note("clock %s", by) }
func (r *recorder) Hold(until time.Time)          { r.note("hold for %s", time.Until(until).Round(time.Second)) }
func (r *recorder) Pause(d time.Duration)         { r.note("pause for %s", d) }
func (r *recorder) SlowDown(failed time.Duration) { r.note("slow down by %s", failed) }
func (r *recorder) Quiet() time.Duration          { return time.Minute }
func (r *recorder) WhenIdle(do func())            { r.idle = append(r.idle, do) }

func (r *recorder) After(d time.Duration, do func()) {
	r.note("timer %s", d)
	r.later = append(r.later, do)
}

func (r *recorder) judge(what string)                { r.judged = append(r.judged, what) }
func (r *recorder) BeforeWrite(w *apiserver.Request) { r.judge("before " + w.Verb) }
func (r *recorder) BeforeCall(c external.Call)       { r.judge("before " + c.Verb) }
func (r *recorder) AfterCall(c external.Call)        { r.judge("after " + c.Verb) }
func (r *recorder) AfterWrite(w *apiserver.Request, response *apiserver.Response) {
	r.judge(fmt.Sprintf("after %s %d", w.Verb, response.Code))
}
func (r *recorder) Disturbed(types.UID)   { r.note("disturbed") }
func (r *recorder) StatusWiped(types.UID) { r.note("status wiped") }
func (r *recorder) Stuck(cause string, blocked []external.Blocked) {
	r.note("stuck: %s, blocked %v", cause, blocked)
}
func (r *recorder) Explains(types.UID) bool              { return true }
func (r *recorder) Inventory() []external.Resource       { return nil }
func (r *recorder) Created(types.UID) int                { return 0 }
func (r *recorder) MintsIDs() bool                       { return false }
func (r *recorder) Drift(types.UID) (id string, ok bool) { r.note("drift"); return "b", true }
func (r *recorder) PutBack()                             { r.note("put back") }
func (r *recorder) Push()                                { r.note("push") }
func (r *recorder) LetOvertake(d time.Duration)          { r.note("let others overtake for %s", d) }

// watchesOf are the watches of a recorder.
type watchesOf recorder

func (w *watchesOf) Delay(kind string, n int, d time.Duration) {
	(*recorder)(w).note("delay %s by %d for %s", kind, n, d)
}
func (w *watchesOf) Close(kind string)  { (*recorder)(w).note("close %s", kind) }
func (w *watchesOf) Expire(kind string) { (*recorder)(w).note("expire %s", kind) }

// struck returns who has let faults strike, in the order of the trace.
func (s *stage) struck() string {
	var actors []string
	for _, e := range s.Trace.Entries() {
		if e.What == "fault" {
			actors = append(actors, e.Actor)
		}
	}
	return strings.Join(actors, ", ")
}

// ask sends a request that must succeed.
func (s *stage) ask(t *testing.T, actor, method, path, body string) {
	t.Helper()
	if _, err := s.Cluster.Ask(actor, method, path, "application/json", []byte(body)); err != nil {
		t.Fatal(err)
	}
}

// request returns one of the operator.
func request(t *testing.T, method, path, body string) *apiserver.Request {
	t.Helper()
	contentType := "application/json"
	if method == http.MethodPatch {
		contentType = "application/merge-patch+json"
	}
	r, err := apiserver.NewRequest(method, path, contentType, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Actor = "operator"
	return r
}

// pass lets the times pass that the stage waits for.
func (s *stage) pass() {
	for len(s.later) > 0 {
		do := s.later[0]
		s.later = s.later[1:]
		do()
	}
}

// settle does what waits until everything is idle.
func (s *stage) settle() {
	s.pass()
	idle := s.idle
	s.idle = nil
	for _, do := range idle {
		do()
	}
	s.pass()
}

// world returns an object as one line, or "none". UIDs are numbered.
func (s *stage) world(of string) string {
	obj, err := s.Cluster.LookUp(of)
	if err != nil {
		return "none"
	}
	shown := map[string]any{}
	for _, k := range []string{"data", "status"} {
		if v, ok := obj.Object[k]; ok {
			shown[k] = v
		}
	}
	for k, v := range map[string]map[string]string{"annotations": obj.GetAnnotations(), "labels": obj.GetLabels()} {
		if len(v) > 0 {
			shown[k] = v
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// show returns an answer as one word.
func show(a *Answer) string {
	switch {
	case a == nil:
		return "none yet"
	case a.Panics:
		return "panic"
	case a.Err != nil:
		return a.Err.Error()
	}
	return fmt.Sprint(a.Response.Code)
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
}

// Every kind of fault has one effect, at the point that the table of package fault says.
func TestEveryFaultHasAnEffect(t *testing.T) {
	for _, kind := range fault.Kinds() {
		_, write := writeEffects[kind]
		_, read := readEffects[kind]
		_, call := callEffects[kind]
		_, event := eventEffects[kind]
		want := map[fault.Point]bool{fault.AtWrite: write, fault.AtRead: read, fault.AtCall: call, fault.AtEvent: event}
		n := 0
		for _, has := range want {
			if has {
				n++
			}
		}
		switch kind {
		case fault.WithholdAtDeletion, fault.TakeDetour, fault.ProveIdle: // have methods of the injector
			equal(t, kind.String(), 0, n)
		default:
			if n != 1 || !want[kind.Point()] {
				t.Errorf("%q: %d effects, one at its point: %t", kind, n, want[kind.Point()])
			}
		}
	}
}

// A fault strikes once, only at its place, and not while it is proved that the operator is idle.
func TestWhenFaultsStrike(t *testing.T) {
	read := func(s *stage) string {
		return show(s.Read(&Read{Actor: "operator", Request: request(t, "GET", "/api/v1/configmaps", "")}))
	}
	s := newStage(t, "refuse read 2: 500")
	equal(t, "answers", []string{"200", "500", "200"}, []string{read(s), read(s), read(s)})
	equal(t, "fired", []bool{true}, s.Fired())
	s = newStage(t, "refuse read 1: 500")
	s.Suspend()
	equal(t, "answer", "200", read(s))
	s.Resume()
	equal(t, "fired", []bool{false}, s.Fired())
}

// What arrives is judged, before and after: not what a fault keeps from arriving, nor what only
// reads, nor what other clients do. Each effect and each fault counts as activity.
func TestWhatIsJudged(t *testing.T) {
	tests := map[string]struct {
		judged string
		active int
	}{
		"no fault":                               {"before patch, after patch 200, before create, after create", 2},
		"refuse write 1: 409; fail call 1":       {"", 2},
		"land write 1 late; crash inside call 1": {"before create, after create, before patch, after patch 200", 4},
		"crash after write 1; crash after call 1": {
			"before patch, after patch 200, before create, after create", 4,
		},
		"withhold configmaps default/x from write 1; drift after call 1": {"before patch, after patch 404, before create, after create", 4},
	}
	for plan, test := range tests {
		s := newStage(t, plan)
		c := writeCase{}
		c.write(t, s, "operator")
		s.make("operator", "buckets", func() error { return nil })
		s.Read(&Read{Actor: "operator", Request: request(t, "GET", "/api/v1/configmaps", "")})
		s.Call(&Call{Actor: "operator", Process: s, Turn: s, Call: external.Call{System: "buckets", Verb: "get"}, Do: func() error { return nil }})
		s.settle()
		equal(t, plan+" judged", test.judged, strings.Join(s.judged, ", "))
		equal(t, plan+" active", test.active, s.active)
	}
}

// A call without an effect is judged before it only.
func TestAFailedCallHasNoEffect(t *testing.T) {
	s := newStage(t, "no fault")
	s.make("operator", "buckets", func() error { return external.ErrThrottled })
	equal(t, "judged", "before create", strings.Join(s.judged, ", "))
}

// scriptPlan has the faults without an effect of their own: the script asks for them.
const scriptPlan = "detour 2; resync and restart at checkpoint 1; withhold secrets default/s from deletion 1; " +
	"withhold configmaps default/x from write 0"

func TestFaultsOfTheScript(t *testing.T) {
	s := newStage(t, scriptPlan)
	equal(t, "detours", []bool{false, true, false}, []bool{s.Detour(1), s.Detour(2), s.Detour(3)})
	equal(t, "checkpoints", []bool{true, false}, []bool{s.Checkpoint(1), s.Checkpoint(2)})
	equal(t, "fired before the start", []bool{true, true, false, false}, s.Fired())
	s.Start()
	equal(t, "the object before the start", "none", s.world("configmaps default/x"))
	equal(t, "the object before the deletion", "{}", s.world("secrets default/s"))
	s.Deletion()
	equal(t, "the object at the deletion", "none", s.world("secrets default/s"))
	s.Deletion()
	equal(t, "struck", "user, sim, sim, sim", s.struck())
	s.settle()
	equal(t, "the objects when idle", []string{was, "{}"}, []string{s.world("configmaps default/x"), s.world("secrets default/s")})
	equal(t, "seen", "other DELETED, other DELETED, other ADDED, other ADDED", strings.Join(s.seen, ", "))
	if !slices.Contains(s.did, "stuck: the object secrets default/s is missing, blocked []") {
		t.Errorf("did %s", strings.Join(s.did, ", "))
	}
}

// everyPlace has places at which each fault can strike, with all its answers.
var everyPlace = []fault.Place{
	{Point: fault.AtWrite, At: 1, UsesClock: true, Watched: []string{"a"}, Withholdable: []string{"secrets default/s"}, Write: &fault.Write{
		Verb: "update", Exists: true, Conditional: true, Child: true, Users: []string{"a b/c"}, Statuses: []string{"a b/c"}, Annotated: []string{"a b/c"},
	}},
	{Point: fault.AtWrite, At: 1, Write: &fault.Write{Verb: "create", Named: true, Owned: true}},
	{Point: fault.AtWrite, At: 1, Write: &fault.Write{Verb: "patch", Exists: true, AddsFinalizer: true}},
	{Point: fault.AtRead, At: 1},
	{Point: fault.AtCall, At: 1, Mutates: true},
	{Point: fault.AtEvent, At: 1, Of: "a"},
	{Point: fault.AtDetour, At: 1},
	{Point: fault.AtDeletion, At: 1, Withholdable: []string{"secrets default/s"}},
	{Point: fault.WhenIdle, At: 1},
}

// Every kind of fault of the table, with each of its answers, is the plan of a test.
func TestEveryFaultIsTested(t *testing.T) {
	plans := []string{scriptPlan}
	for _, c := range writeCases {
		plans = append(plans, c.plan)
	}
	for _, c := range readCases {
		plans = append(plans, c.plan)
	}
	for _, c := range callCases {
		plans = append(plans, c.plan)
	}
	for _, c := range eventCases {
		plans = append(plans, c.plan)
	}
	tested := map[fault.Fault]bool{} // by kind and answer
	p, err := fault.ParsePlan(strings.Join(plans, "; "))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Faults {
		tested[fault.Fault{Kind: f.Kind}] = true
		tested[fault.Fault{Kind: f.Kind, How: f.How}] = true
	}
	for _, kind := range fault.Kinds() {
		if !tested[fault.Fault{Kind: kind}] {
			t.Errorf("%q has no test", kind)
		}
	}
	possible := map[fault.Kind]bool{}
	for _, place := range everyPlace {
		for _, f := range place.Faults() {
			possible[f.Kind] = true
			if !tested[fault.Fault{Kind: f.Kind, How: f.How}] {
				t.Errorf("%q with the answer %q has no test", f.Kind, f.How)
			}
		}
	}
	equal(t, "kinds that can strike", len(fault.Kinds()), len(possible))
}
