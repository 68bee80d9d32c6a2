// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package tracing_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/operator/tracing"
)

var (
	errRefused = errors.New("connection refused")
	failed     = journal.Outcome{Err: errRefused, Class: "TemporaryError"}
	database   = journal.Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}
	secret     = journal.Object{Kind: "Secret", Namespace: "default", Name: "db"}
)

func waitFor(what string) journal.Outcome {
	return journal.Outcome{Waits: []journal.Wait{{For: what}}}
}

// A world is a tracer and the spans that it has made, at a time that the world sets.
type world struct {
	recorder *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
	tracer   *tracing.Tracer
}

// noon is when everything begins.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func newWorld(options ...sdktrace.TracerProviderOption) *world {
	w := &world{recorder: tracetest.NewSpanRecorder()}
	w.provider = sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(w.recorder))...)
	w.tracer = tracing.New(w.provider)
	return w
}

// A moment is an event at a number of seconds after noon.
type moment struct {
	at    float64
	event journal.Event
}

// observe passes events of a run to the tracer, or events before one if it is nil.
func (w *world) observe(run *journal.Run, object journal.Object, moments ...moment) {
	for _, m := range moments {
		w.tracer.Observe(context.Background(), journal.Entry{
			Time: noon.Add(time.Duration(m.at * float64(time.Second))), Run: run, Controller: "database", Object: object, Event: m.event,
		})
	}
}

func (w *world) expect(t *testing.T, want string) {
	t.Helper()
	if diff := gocmp.Diff(strings.TrimSpace(want), strings.TrimSpace(draw(w.recorder.Ended()))); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if running := len(w.recorder.Started()) - len(w.recorder.Ended()); running > 0 {
		t.Errorf("%d spans have not ended", running)
	}
}

// draw writes ended spans as trees: of each its name, when it began and ended, its attributes, its
// status, its links and its events.
func draw(spans []sdktrace.ReadOnlySpan) string {
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int {
		return cmp.Or(a.StartTime().Compare(b.StartTime()), cmp.Compare(a.Name(), b.Name()))
	})
	numbers := make(map[trace.SpanID]int)
	for i, s := range spans {
		numbers[s.SpanContext().SpanID()] = i + 1
	}
	var b strings.Builder
	var below func(parent trace.SpanID, indent string)
	below = func(parent trace.SpanID, indent string) {
		for _, s := range spans {
			if s.Parent().SpanID() != parent {
				continue
			}
			fmt.Fprintf(&b, "%s%s %s-%s %s", indent, s.Name(), clock(s.StartTime()), clock(s.EndTime()), texts(s.Attributes()))
			if s.Status().Code != codes.Unset {
				fmt.Fprintf(&b, " %v: %s", s.Status().Code, s.Status().Description)
			}
			for _, l := range s.Links() {
				fmt.Fprintf(&b, " link=#%d", numbers[l.SpanContext.SpanID()])
			}
			b.WriteString("\n")
			for _, e := range s.Events() {
				fmt.Fprintf(&b, "%s  * %s %s %s\n", indent, e.Name, clock(e.Time), texts(e.Attributes))
			}
			below(s.SpanContext().SpanID(), indent+"  ")
		}
	}
	below(trace.SpanID{}, "")
	return b.String()
}

func clock(t time.Time) string { return t.Sub(noon).String() }

func texts(attributes []attribute.KeyValue) string {
	all := make([]string, len(attributes))
	for i, a := range attributes {
		all[i] = string(a.Key) + "=" + a.Value.String()
	}
	return strings.Join(all, " ")
}

// One reconcile with all that can be in it.
func TestReconcile(t *testing.T) {
	w := newWorld()
	w.observe(nil, database,
		moment{0, journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated"}}},
		moment{1, journal.Triggered{Cause: journal.Cause{Kind: journal.CauseChildChange, Verb: "created", Object: secret}}})
	w.observe(&journal.Run{}, database,
		moment{2, journal.Started{Generation: 3, Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Verb: "updated"}, {Kind: journal.CauseTimer}}}},
		moment{2, journal.StepBegan{Step: "Account", Phase: journal.PhaseDo}},
		moment{3, journal.Wrote{Step: "Account", Verb: "apply", Object: secret, Fields: []string{"data.user", "data.password"}}},
		moment{4, journal.StepEnded{Step: "Account", Phase: journal.PhaseDo, Duration: 2 * time.Second}},
		moment{4, journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}},
		moment{5, journal.ActionBegan{Step: "Run", Action: "Backup"}},
		moment{5.5, journal.ActionBegan{Step: "Run", Action: "Migrate"}},
		moment{6, journal.ActionEnded{Step: "Run", Action: "Migrate", Outcome: waitFor("Job default/db"), Duration: 500 * time.Millisecond}},
		moment{6, journal.Wrote{Step: "Run", Verb: "create", Object: secret, Err: errRefused}},
		moment{7, journal.ActionEnded{Step: "Run", Action: "Backup", Outcome: failed, Duration: 2 * time.Second}},
		moment{7, journal.ActionBlocked{Step: "Run", Action: "Switch", By: []string{"Backup"}}},
		moment{8, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Duration: 4 * time.Second,
			Outcome: journal.Outcome{Err: errRefused, Class: "TemporaryError", Waits: []journal.Wait{{For: "Job default/db"}}}}},
		moment{8, journal.StepBegan{Step: "Account", Phase: journal.PhasePost}},
		moment{9, journal.StepEnded{Step: "Account", Phase: journal.PhasePost, Outcome: journal.Outcome{RequeueAfter: time.Hour}, Duration: time.Second}},
		moment{9, journal.Wrote{Verb: "patch", Object: database, Subresource: "status"}},
		moment{10, journal.Finished{Result: journal.ResultFailed, Outcome: failed, Duration: 8 * time.Second}})
	w.expect(t, `
Triggered 0s-0s controller=database namespace=default name=db cause=own change verb=updated
Triggered 1s-1s controller=database namespace=default name=db cause=child change verb=created object=Secret default/db
Reconcile Database 2s-10s controller=database namespace=default name=db generation=3 causes=["own change (updated)","timer"] result=failed class=TemporaryError Error: connection refused link=#1 link=#2
  * Write 9s verb=patch kind=Database namespace=default name=db subresource=status
  Account: Do 2s-4s step=Account phase=Do outcome=done
    * Write 3s verb=apply kind=Secret namespace=default name=db fields=["data.user","data.password"]
  Run: Do 4s-8s step=Run phase=Do outcome=failed class=TemporaryError Error: connection refused
    * Write 6s verb=create kind=Secret namespace=default name=db error=connection refused
    Backup 5s-7s step=Run action=Backup outcome=failed class=TemporaryError Error: connection refused
    Migrate 5.5s-6s step=Run action=Migrate outcome=waiting
      * Wait 6s for=Job default/db
  Account: Post 8s-9s step=Account phase=Post outcome=requeue
`)
}

// A wait is an event of the innermost span that reported it, of each of them, and no error.
func TestWaits(t *testing.T) {
	w := newWorld()
	job, user := journal.Wait{For: "Job default/db"}, journal.Wait{For: "the user", Every: time.Minute}
	w.observe(&journal.Run{}, database,
		moment{0, journal.Started{Generation: 1}},
		moment{0, journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}},
		moment{0, journal.ActionBegan{Step: "Run", Action: "Migrate"}},
		moment{1, journal.ActionEnded{Step: "Run", Action: "Migrate", Outcome: journal.Outcome{Waits: []journal.Wait{job}}}},
		moment{2, journal.ActionBegan{Step: "Run", Action: "Switch"}},
		moment{3, journal.ActionEnded{Step: "Run", Action: "Switch", Outcome: journal.Outcome{Waits: []journal.Wait{job}}}},
		moment{4, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{job, user}}}},
		moment{5, journal.StepBegan{Step: "Account", Phase: journal.PhaseDo}},
		moment{6, journal.StepEnded{Step: "Account", Phase: journal.PhaseDo, Outcome: journal.Outcome{Waits: []journal.Wait{job}}}},
		moment{7, journal.Finished{Result: journal.ResultWaiting, Outcome: journal.Outcome{Waits: []journal.Wait{job, user, job, {For: "an approval"}}}}})
	w.expect(t, `
Reconcile Database 0s-7s controller=database namespace=default name=db generation=1 causes=[] result=waiting
  * Wait 7s for=an approval
  Run: Do 0s-4s step=Run phase=Do outcome=waiting
    * Wait 4s for=the user every=1m0s
    Migrate 0s-1s step=Run action=Migrate outcome=waiting
      * Wait 1s for=Job default/db
    Switch 2s-3s step=Run action=Switch outcome=waiting
      * Wait 3s for=Job default/db
  Account: Do 5s-6s step=Account phase=Do outcome=waiting
    * Wait 6s for=Job default/db
`)
}

// Of equal actions that run concurrently, the durations say which has ended.
func TestEqualActions(t *testing.T) {
	for _, tt := range []struct {
		name             string
		first, second    moment
		wantOne, wantTwo string
	}{
		{"in order",
			moment{3, journal.ActionEnded{Step: "Run", Action: "Check", Duration: 2500 * time.Millisecond}},
			moment{4, journal.ActionEnded{Step: "Run", Action: "Check", Outcome: failed, Duration: 3 * time.Second}},
			"0s-3s step=Run action=Check outcome=done", "1s-4s step=Run action=Check outcome=failed class=TemporaryError Error: connection refused"},
		{"the second first",
			moment{3, journal.ActionEnded{Step: "Run", Action: "Check", Duration: 2 * time.Second}},
			moment{4, journal.ActionEnded{Step: "Run", Action: "Check", Outcome: failed, Duration: 4 * time.Second}},
			"0s-4s step=Run action=Check outcome=failed class=TemporaryError Error: connection refused", "1s-3s step=Run action=Check outcome=done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.observe(&journal.Run{}, database,
				moment{0, journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}},
				moment{0, journal.ActionBegan{Step: "Run", Action: "Check"}},
				moment{1, journal.ActionBegan{Step: "Run", Action: "Check"}},
				tt.first, tt.second,
				moment{5, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: failed}},
				moment{6, journal.Finished{Result: journal.ResultFailed, Outcome: failed}})
			w.expect(t, fmt.Sprintf(`
Reconcile Database 0s-6s controller=database namespace=default name=db result=failed class=TemporaryError Error: connection refused
  Run: Do 0s-5s step=Run phase=Do outcome=failed class=TemporaryError Error: connection refused
    Check %s
    Check %s
`, tt.wantOne, tt.wantTwo))
		})
	}
}

// Events in an unusual order.
func TestIncomplete(t *testing.T) {
	for _, tt := range []struct {
		name    string
		moments []moment
		want    string
	}{
		{"a reconcile that could not read its object",
			[]moment{{5, journal.Finished{Result: journal.ResultFailed, Outcome: failed, Duration: 2 * time.Second}}},
			"Reconcile Database 3s-5s controller=database namespace=default name=db result=failed class=TemporaryError Error: connection refused"},
		{"a pending cleanup, before the reconcile", []moment{
			{0, journal.StepBegan{Step: "Account", Phase: journal.PhaseCleanup}},
			{1, journal.StepEnded{Step: "Account", Phase: journal.PhaseCleanup}},
			{2, journal.Started{Generation: 1}},
			{3, journal.Finished{Result: journal.ResultDone}},
		}, `
Reconcile Database 0s-3s controller=database namespace=default name=db generation=1 causes=[] result=done
  Account: Cleanup 0s-1s step=Account phase=Cleanup outcome=done`},
		{"an action that outlives its timeout", []moment{
			{0, journal.Started{Generation: 1}},
			{0, journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}},
			{1, journal.ActionBegan{Step: "Run", Action: "Migrate"}},
			{2, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: failed}},
			{3, journal.Finished{Result: journal.ResultFailed, Outcome: failed}},
			{4, journal.Wrote{Step: "Run", Verb: "create", Object: secret}},
			{5, journal.ActionEnded{Step: "Run", Action: "Migrate"}},
			{6, journal.ActionBegan{Step: "Run", Action: "Switch"}},
		}, `
Reconcile Database 0s-3s controller=database namespace=default name=db generation=1 causes=[] result=failed class=TemporaryError Error: connection refused
  Run: Do 0s-2s step=Run phase=Do outcome=failed class=TemporaryError Error: connection refused
    Migrate 1s-3s step=Run action=Migrate`},
		{"an end without a beginning", []moment{
			{0, journal.Started{Generation: 1}},
			{1, journal.ActionEnded{Step: "Run", Action: "Migrate", Outcome: failed}},
			{1, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: failed}},
			{2, journal.Finished{Result: journal.ResultDone}},
		}, "Reconcile Database 0s-2s controller=database namespace=default name=db generation=1 causes=[] result=done"},
		{"an action of no step", []moment{
			{0, journal.Started{Generation: 1}},
			{0, journal.ActionBegan{Action: "Migrate"}},
			{1, journal.ActionEnded{Action: "Migrate", Duration: time.Second}},
			{2, journal.Finished{Result: journal.ResultDone}},
		}, `
Reconcile Database 0s-2s controller=database namespace=default name=db generation=1 causes=[] result=done
  Migrate 0s-1s step= action=Migrate outcome=done`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			w.observe(&journal.Run{}, database, tt.moments...)
			w.expect(t, tt.want)
		})
	}
}

func TestEventsWithoutRunAreLeftOut(t *testing.T) {
	w := newWorld()
	w.observe(nil, database, moment{0, journal.Started{}}, moment{1, journal.Finished{}})
	w.expect(t, "")
}

// links returns how many links the spans of reconciles have, by the names of their objects.
func (w *world) links() map[string][]int {
	all := make(map[string][]int)
	for _, s := range w.recorder.Ended() {
		if strings.HasPrefix(s.Name(), "Reconcile") {
			name := s.Attributes()[2].Value.AsString()
			all[name] = append(all[name], len(s.Links()))
		}
	}
	return all
}

// Triggers belong to the next reconcile of their object, and to one only.
func TestLinks(t *testing.T) {
	w := newWorld()
	other := journal.Object{Kind: "Database", Namespace: "default", Name: "other"}
	triggered := moment{0, journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange}}}
	reconcile := func(object journal.Object) {
		w.observe(&journal.Run{}, object, moment{1, journal.Started{}}, moment{2, journal.Finished{Result: journal.ResultDone}})
	}
	w.observe(nil, database, triggered)
	w.observe(nil, other, triggered, triggered)
	reconcile(database)
	reconcile(database)
	reconcile(other)
	for range 20 {
		w.observe(nil, database, triggered)
	}
	reconcile(database)
	want := map[string][]int{"db": {1, 0, 8}, "other": {2}}
	if diff := gocmp.Diff(want, w.links()); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if got := len(w.recorder.Ended()); got != 23+4 {
		t.Errorf("got %d spans, want one for each of 23 triggers and 4 reconciles", got)
	}
}

// A trigger during a reconcile asks for the next one.
func TestTriggerDuringReconcile(t *testing.T) {
	w := newWorld()
	run := &journal.Run{}
	w.observe(run, database, moment{0, journal.Started{}})
	w.observe(nil, database, moment{1, journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnWrite}}})
	w.observe(run, database, moment{2, journal.Finished{Result: journal.ResultDone}})
	w.observe(&journal.Run{}, database, moment{3, journal.Started{}}, moment{4, journal.Finished{Result: journal.ResultDone}})
	if diff := gocmp.Diff(map[string][]int{"db": {0, 1}}, w.links()); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

// Nothing is linked to a span that was not sampled.
func TestUnsampledTriggersAreNotLinked(t *testing.T) {
	w := newWorld(sdktrace.WithSampler(reconcilesOnly{}))
	w.observe(nil, database, moment{0, journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange}}})
	w.observe(&journal.Run{}, database, moment{1, journal.Started{}}, moment{2, journal.Finished{Result: journal.ResultDone}})
	if diff := gocmp.Diff(map[string][]int{"db": {0}}, w.links()); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

type reconcilesOnly struct{}

func (reconcilesOnly) Description() string { return "reconciles only" }
func (reconcilesOnly) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	decision := sdktrace.Drop
	if p.Name != "Triggered" {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision}
}

// A span that the caller of the engine has started is the parent.
func TestParentFromContext(t *testing.T) {
	w := newWorld()
	ctx, outer := w.provider.Tracer("test").Start(context.Background(), "outer", trace.WithTimestamp(noon))
	run := &journal.Run{}
	w.tracer.Observe(ctx, journal.Entry{Time: noon, Run: run, Object: database, Event: journal.Started{}})
	w.tracer.Observe(ctx, journal.Entry{Time: noon, Run: run, Object: database, Event: journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}})
	w.tracer.Observe(ctx, journal.Entry{Time: noon, Run: run, Object: database, Event: journal.StepEnded{Step: "Run", Phase: journal.PhaseDo}})
	w.tracer.Observe(ctx, journal.Entry{Time: noon, Run: run, Object: database, Event: journal.Finished{Result: journal.ResultDone}})
	outer.End(trace.WithTimestamp(noon))
	w.expect(t, `
outer 0s-0s 
  Reconcile Database 0s-0s controller= namespace=default name=db generation=0 causes=[] result=done
    Run: Do 0s-0s step=Run phase=Do outcome=done
`)
}

// Reconciles that never finish are let go, the oldest first, and objects that are never reconciled,
// too.
func TestNothingGrowsForEver(t *testing.T) {
	w := newWorld()
	const most = 10_000
	runs := make([]*journal.Run, most+2)
	for i := range runs {
		runs[i] = &journal.Run{}
		object := journal.Object{Kind: "Database", Name: fmt.Sprint(i)}
		w.observe(nil, object, moment{0, journal.Triggered{}})
		w.observe(runs[i], object, moment{float64(i), journal.Started{Generation: 1}})
	}
	var ended []string
	for _, s := range w.recorder.Ended() {
		if s.Name() != "Triggered" {
			ended = append(ended, fmt.Sprint(s.Name(), " ", clock(s.StartTime()), "-", clock(s.EndTime()), " ", texts(s.Attributes())))
		}
	}
	want := []string{
		"Reconcile Database 0s-2h46m40s controller=database namespace= name=0 generation=1 causes=[]",
		"Reconcile Database 1s-2h46m41s controller=database namespace= name=1 generation=1 causes=[]",
	}
	if diff := gocmp.Diff(want, ended); diff != "" {
		t.Errorf("spans that were let go (-want +got):\n%s", diff)
	}

	w = newWorld()
	for i := range most + 1 {
		w.observe(nil, journal.Object{Kind: "Database", Name: fmt.Sprint(i)}, moment{0, journal.Triggered{}})
	}
	for _, i := range []int{0, 1, most} {
		object := journal.Object{Kind: "Database", Name: fmt.Sprint(i)}
		w.observe(&journal.Run{}, object, moment{1, journal.Started{}}, moment{2, journal.Finished{Result: journal.ResultDone}})
	}
	if diff := gocmp.Diff(map[string][]int{"0": {0}, "1": {1}, "10000": {1}}, w.links()); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestGlobalProvider(t *testing.T) {
	w, before := newWorld(), otel.GetTracerProvider()
	otel.SetTracerProvider(w.provider)
	t.Cleanup(func() { otel.SetTracerProvider(before) })
	w.tracer = tracing.New(nil)
	w.observe(&journal.Run{}, database, moment{0, journal.Started{Generation: 1}}, moment{1, journal.Finished{Result: journal.ResultDone}})
	w.expect(t, "Reconcile Database 0s-1s controller=database namespace=default name=db generation=1 causes=[] result=done")
}

func TestConcurrentUse(t *testing.T) {
	w := newWorld()
	var reconciles sync.WaitGroup
	for i := range 4 {
		reconciles.Go(func() {
			object := journal.Object{Kind: "Database", Name: fmt.Sprint(i)}
			for range 20 {
				run := &journal.Run{}
				w.observe(nil, object, moment{0, journal.Triggered{}})
				w.observe(run, object, moment{0, journal.Started{}}, moment{1, journal.StepBegan{Step: "Run", Phase: journal.PhaseDo}})
				var actions sync.WaitGroup
				for range 4 {
					actions.Go(func() {
						w.observe(run, object,
							moment{2, journal.ActionBegan{Step: "Run", Action: "Check"}},
							moment{3, journal.Wrote{Step: "Run", Verb: "create"}},
							moment{4, journal.ActionEnded{Step: "Run", Action: "Check", Outcome: waitFor("a Job")}})
					})
				}
				actions.Go(func() { // one that outlives the reconcile
					w.observe(run, object, moment{2, journal.ActionBegan{Step: "Run", Action: "Migrate"}})
				})
				w.observe(nil, object, moment{3, journal.Triggered{}})
				w.observe(run, object, moment{5, journal.Finished{Result: journal.ResultWaiting}})
				actions.Wait()
			}
		})
	}
	reconciles.Wait()
	if running := len(w.recorder.Started()) - len(w.recorder.Ended()); running > 0 {
		t.Errorf("%d spans have not ended", running)
	}
}
