// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/actor"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// stage is a run with a server and an injector, in which everything else is a recorder.
type stage struct {
	*Injector
	recorder
	seen  []string          // the changes of objects as every watcher sees them
	shown map[string]string // the objects as they were shown
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
	s.changes()
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
func (r *recorder) AfterWrite(w *apiserver.Request, response *apiserver.Response) (retry bool) {
	r.judge(fmt.Sprintf("after %s %d", w.Verb, response.Code))
	return false
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

// world returns an object as one line.
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
	if diff := gocmp.Diff(want, got); diff != "" {
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

// Stories are in testdata: a plan, what passes the injector, a line each, and below it what that shows: the
// answer, the trace, what was asked of processes and the schedule, what the watchers have seen, and the
// objects that have changed.
func TestStories(t *testing.T) {
	golden.Stories(t, "stories.txt", func(story []string) []string {
		s := newStage(t, strings.TrimPrefix(story[0], "plan "))
		played := golden.Play(story[1:], func(line string) []string { return s.play(t, line) })
		return slices.Concat(story[:1], played, []string{fmt.Sprintf("    fired %v, active %d times", s.Fired(), s.active)})
	})
}

// play does what a line says, and returns all that it shows.
func (s *stage) play(t *testing.T, line string) (shown []string) {
	traced := s.Trace.Len()
	if text := s.do(t, line); text != "" {
		shown = append(shown, text)
	}
	for _, e := range s.Trace.Entries()[traced:] {
		shown = append(shown, fmt.Sprintf("%s: %s: %s", e.Actor, e.What, e.Text))
	}
	if len(s.did) > 0 {
		shown = append(shown, "did: "+strings.Join(s.did, ", "))
	}
	if len(s.seen) > 0 {
		shown = append(shown, "seen: "+strings.Join(s.seen, ", "))
	}
	s.did, s.seen = nil, nil
	return append(shown, s.changes()...)
}

// do does what a line says. The operator is meant, its ConfigMap x and its buckets, where it names no other.
func (s *stage) do(t *testing.T, line string) string {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	actor := "operator"
	if first, more, _ := strings.Cut(rest, " "); strings.HasPrefix(first, "operator-") {
		actor, rest = first, more
	}
	switch verb {
	case "write":
		parts := append(strings.SplitN(rest, " ", 3), "", "")
		r := request(t, cmp.Or(parts[0], "PATCH"), pathOf(cmp.Or(parts[1], "configmaps/x")), cmp.Or(parts[2], `{"data":{"a":"2"}}`))
		r.Actor = actor
		return show(s.Write(&Write{Actor: actor, Process: s, Turn: s, Request: r}))
	case "read":
		answer := s.Read(&Read{Actor: actor, Request: request(t, "GET", pathOf(rest), "")})
		text := show(answer)
		if answer.Response != nil {
			for _, value := range []string{`"a":"1"`, `"a":"2"`, `"a":"3"`} {
				if strings.Contains(string(answer.Response.Body), value) {
					text += " " + value
				}
			}
		}
		return text
	case "call": // of a system, and with an error
		system, failure, _ := strings.Cut(cmp.Or(rest, "buckets"), " ")
		return s.call(actor, external.Call{System: system, Verb: "create", Mutates: true, Owner: "1"}, failure)
	case "get":
		return s.call(actor, external.Call{System: "buckets", Verb: "get"}, "")
	case "event":
		return map[bool]string{true: "taken", false: "delivered"}[s.event(rest)]
	}
	return s.script(t, verb, rest)
}

// script does what a line says that is not of the operator.
func (s *stage) script(t *testing.T, verb, rest string) string {
	t.Helper()
	number := func() (n int) {
		_, _ = fmt.Sscan(rest, &n) //nolint:errcheck // a story
		return n
	}
	switch verb {
	case "user":
		method, path, _ := strings.Cut(rest, " ")
		path, body, _ := strings.Cut(path, " ")
		s.ask(t, "user", method, pathOf(path), body)
	case "create": // by the operator
		s.ask(t, "operator", "POST", pathOf("configmaps"), rest)
	case "pass":
		s.pass()
	case "settle":
		s.settle()
	case "start":
		s.Start()
	case "suspend":
		s.Suspend()
	case "resume":
		s.Resume()
	case "deletion":
		s.Deletion()
	case "detour":
		return fmt.Sprint(s.Detour(number()))
	case "checkpoint":
		return fmt.Sprint(s.Checkpoint(number()))
	case "judged":
		return strings.Join(s.judged, ", ")
	case "blocked":
		return fmt.Sprint(s.Actors.Blocked())
	case "starts-in-past":
		return fmt.Sprint(s.StartsInPast(rest))
	case "comes-from-past":
		d, past := s.ComesFromPast(rest)
		return fmt.Sprint(past, " ", d)
	default:
		t.Fatalf("a story has the unknown verb %q", verb)
	}
	return ""
}

// call makes a call, which has its effect or fails.
func (s *stage) call(actor string, c external.Call, failure string) string {
	answer := s.Call(&Call{Actor: actor, Process: s, Turn: s, Call: c, Do: func() error {
		if failure != "" {
			return errors.New(failure)
		}
		s.note("%s", "the effect")
		return nil
	}})
	if answer != nil && !answer.Panics && answer.Err == nil {
		return "ok"
	}
	return show(answer)
}

// event brings an event of a kind, and reports whether a fault has taken it over.
func (s *stage) event(kind string) (taken bool) {
	return s.Event(&Event{Actor: "operator", Kind: kind, Text: "ADDED " + kind + " default/s", Stream: s})
}

func pathOf(path string) string {
	if strings.HasPrefix(path, "/") {
		return path
	}
	return "/api/v1/namespaces/default/" + path
}

// changes returns the objects that have changed since it was called last.
func (s *stage) changes() (lines []string) {
	now := map[string]string{}
	for _, o := range s.Cluster.Server.Objects() {
		of := cluster.ObjectName(o.Resource, o.Namespace, o.Name)
		now[of] = s.world(of)
		if before, there := s.shown[of]; !there || before != now[of] {
			lines = append(lines, of+": "+now[of])
		}
	}
	for of := range s.shown {
		if now[of] == "" {
			lines = append(lines, of+" is gone")
		}
	}
	s.shown = now
	slices.Sort(lines)
	return lines
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
	var plans []string
	for _, story := range golden.Read(t, "stories.txt") {
		plans = append(plans, strings.TrimPrefix(story[0], "plan "))
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
