// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

var (
	errFirst  = errors.New("the first thing broke")
	errSecond = errors.New("the second thing broke")
	errThird  = errors.New("the third thing broke")
)

func TestNewListsAllMistakes(t *testing.T) {
	w := newWorld(t)
	declaring := func(name, kind string) step.Step[*Thing] { return keeping(name, passes, kind) }
	tests := []struct {
		name    string
		options step.Options[*Thing]
		steps   []step.Step[*Thing]
		want    []string // in the error
	}{
		{"a name that is no label", step.Options[*Thing]{Name: "Two Words", Client: w.client}, nil, []string{`"Two Words"`, "DNS label"}},
		{"no client", step.Options[*Thing]{Name: "things"}, nil, []string{"no client"}},
		{"a step without a name", w.options(), []step.Step[*Thing]{doing("", passes)}, []string{"step 1", "name"}},
		{"a step with a line break", w.options(), []step.Step[*Thing]{doing("a\nb", passes)}, []string{"step 1", `"a\nb"`}},
		{"two steps of a name", w.options(), []step.Step[*Thing]{doing("Same", passes), doing("Same", passes)}, []string{`two steps have the name "Same"`}},
		{
			"two steps of a name, deep inside", w.options(),
			[]step.Step[*Thing]{doing("Same", passes), step.Group("g", step.When("w", always, doing("Same", passes)))},
			[]string{`two steps have the name "Same"`},
		},
		{"a condition that is computed", w.options(), []step.Step[*Thing]{declaring("S", condition.Ready)}, []string{`"Ready"`}},
		{"a condition twice", w.options(), []step.Step[*Thing]{declaring("S", "Found"), declaring("T", "Found")}, []string{`"Found"`, "twice"}},
		{"a finalizer that nobody needs", withFinalizer(w.options(), "example.com/x"), []step.Step[*Thing]{doing("S", passes)}, []string{`"example.com/x"`}},
		{
			"a finalizer that is none", withFinalizer(w.options(), "x"), []step.Step[*Thing]{cleaning("S", passes, passes)},
			[]string{`"x"`, "qualified name"},
		},
		{
			"all at once", withFinalizer(step.Options[*Thing]{Name: "Two Words", Client: w.client}, "x"),
			[]step.Step[*Thing]{cleaning("", passes, passes), declaring("Same", "Ready"), declaring("Same", "Found")},
			[]string{`"Two Words"`, "step 1", `two steps have the name "Same"`, `"Ready"`, `finalizer "x"`},
		},
		{
			"all at once, and no client", step.Options[*Thing]{Name: "Two Words"}, []step.Step[*Thing]{doing("", passes)},
			[]string{`"Two Words"`, "step 1", "no client"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := step.New(test.options, test.steps...)
			if err == nil {
				t.Fatal("there was no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func always(*step.Request[*Thing]) bool { return true }
func never(*step.Request[*Thing]) bool  { return false }

func withFinalizer(o step.Options[*Thing], finalizer string) step.Options[*Thing] {
	o.Finalizer = finalizer
	return o
}

func TestNewRefusesTypes(t *testing.T) {
	t.Run("not in the scheme", func(t *testing.T) {
		c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build()
		if _, err := step.New(step.Options[*Thing]{Name: "things", Client: c}); err == nil || !strings.Contains(err.Error(), "scheme") {
			t.Errorf("got %v, want an error about the scheme", err)
		}
	})
	t.Run("conditions on a type without them", func(t *testing.T) {
		options := step.Options[*corev1.ConfigMap]{Name: "maps", Client: newWorld(t).client}
		_, err := step.New(options, step.Step[*corev1.ConfigMap](mapKeeper{}))
		if !errors.Is(err, condition.ErrNone) {
			t.Errorf("got %v, want condition.ErrNone", err)
		}
	})
	t.Run("a finalizer of the core group has no default", func(t *testing.T) {
		options := step.Options[*corev1.ConfigMap]{Name: "maps", Client: newWorld(t).client}
		_, err := step.New(options, step.Step[*corev1.ConfigMap](mapCleaner{}))
		if err == nil || !strings.Contains(err.Error(), "qualified name") {
			t.Errorf("got %v, want an error about the finalizer", err)
		}
	})
}

type mapKeeper struct{}

func (mapKeeper) Name() string { return "Keep" }
func (mapKeeper) Do(context.Context, *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}
func (mapKeeper) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: "Found"}}
}

type mapCleaner struct{ mapKeeper }

func (mapCleaner) Conditions() []condition.Declaration { return nil }
func (mapCleaner) Cleanup(context.Context, *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
	return ctrlkit.NoRequeue()
}

// A full step notes each of its calls.
func full(log *[]string, name string, do, cleanup doFunc, post error) step.Step[*Thing] {
	return poster{
		cleaner{doing(name, logged(log, "Do "+name, do)), logged(log, "Cleanup "+name, cleanup)},
		func(context.Context, *step.Request[*Thing]) error {
			addTo(log, "Post "+name)
			return post
		},
	}
}

func TestOrder(t *testing.T) {
	tests := []struct {
		name   string
		delete bool
		first  doFunc
		second doFunc
		want   []string
	}{
		{"all pass", false, passes, passes, []string{"Do A", "Do B", "Do C", "Post A", "Post B", "Post C"}},
		{"the second fails", false, passes, failsWith(errSecond), []string{"Do A", "Do B", "Post A", "Post B", "Post C"}},
		{"the first fails", false, failsWith(errFirst), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first waits", false, waits("Secret default/db"), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first wants to be run again", false, again(time.Minute), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first exits", false, failsWith(ctrlkit.ErrExit), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"the first looks again", false, looksAgain(time.Minute), passes, []string{"Do A", "Do B", "Do C", "Post A", "Post B", "Post C"}},
		{"the first panics", false, panics("no"), passes, []string{"Do A", "Post A", "Post B", "Post C"}},
		{"deleted", true, passes, passes, []string{"Cleanup C", "Cleanup B", "Cleanup A", "Post A", "Post B", "Post C"}},
		{"deleted, the second fails", true, passes, failsWith(errSecond), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
		{"deleted, the second panics", true, passes, panics("no"), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
		{"deleted, the second waits", true, passes, waits("the bucket to be empty"), []string{"Cleanup C", "Cleanup B", "Post A", "Post B", "Post C"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			if test.delete {
				obj = deletedThing(finalizer)
			}
			w := newWorld(t, obj)
			var log []string
			w.engine(
				full(&log, "A", test.first, test.first, nil),
				full(&log, "B", test.second, test.second, errThird), // an error of a Post ends nothing
				full(&log, "C", passes, passes, nil),
			)
			if err := w.fails(); !errors.Is(err, errThird) {
				t.Errorf("got %v, want the error of the Post in it", err)
			}
			if diff := cmp.Diff(test.want, log); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func waits(what string) doFunc {
	return func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrlkit.WaitFor(what) }
}

func again(d time.Duration) doFunc {
	return func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrlkit.RequeueAfter(d) }
}

func looksAgain(d time.Duration) doFunc {
	return func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
		return ctrlkit.ContinueAndRequeueAfter(d)
	}
}

func panics(value any) doFunc {
	return func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { panic(value) }
}

func TestErrorsAreJoined(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleted %v", deleted), func(t *testing.T) {
			obj := newThing()
			if deleted {
				obj = deletedThing(finalizer)
			}
			w := newWorld(t, obj)
			errWrite := errors.New("the disk is full")
			w.fault = failOn("patch status", errWrite)
			var log []string
			w.engine(
				step.Group("both",
					full(&log, "A", failsWith(errFirst), failsWith(errFirst), nil),
					full(&log, "B", failsWith(errSecond), failsWith(errSecond), errThird)),
			)
			err := w.fails()
			for _, want := range []error{errFirst, errSecond, errThird, errWrite} {
				if !errors.Is(err, want) {
					t.Errorf("%v is not in the error: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error has more than one line:\n%v", err)
			}
		})
	}
}

func TestPanicIsAFailure(t *testing.T) {
	errBug := errors.New("a bug")
	gone := func(*step.Request[*Thing]) bool { panic(errBug) }
	tests := []struct {
		name  string
		obj   *Thing
		steps func(log *[]string) []step.Step[*Thing]
	}{
		{"in Do", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{full(log, "A", panics(errBug), passes, nil)}
		}},
		{"in Cleanup", deletedThing(finalizer), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{full(log, "A", passes, panics(errBug), nil)}
		}},
		{"in Post", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{
				posting{doing("P", passes), func(context.Context, *step.Request[*Thing]) error { panic(errBug) }},
				full(log, "A", passes, passes, nil),
			}
		}},
		{"in the condition of When", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("gone", gone, doing("W", passes)), full(log, "A", passes, passes, nil)}
		}},
		{"in the condition of When around a Cleaner", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("gone", gone, full(log, "A", passes, passes, nil))}
		}},
		{"in the function that builds a workflow", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{
				step.Workflow("W", func(*step.Request[*Thing]) ctrlkit.Action { panic(errBug) }),
				full(log, "A", passes, passes, nil),
			}
		}},
		{"on a goroutine of a workflow", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{
				step.Workflow("W", func(*step.Request[*Thing]) ctrlkit.Action {
					return ctrlkit.ParallelJoin(ctrlkit.NewAction("bad", func(context.Context) (ctrl.Result, error) { panic(errBug) }))
				}),
				full(log, "A", passes, passes, nil),
			}
		}},
		{"setting what is not declared", newThing(), func(log *[]string) []step.Step[*Thing] {
			return []step.Step[*Thing]{
				doing("C", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
					defer func() { _ = recover(); panic(errBug) }()
					req.Conditions.MarkHealthy("Undeclared", "Fine", "")
					return ctrlkit.NoRequeue()
				}),
				full(log, "A", passes, passes, nil),
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.obj)
			var log []string
			w.engine(test.steps(&log)...)
			err := w.fails()
			var panicked *ctrlkit.PanicError
			if !errors.As(err, &panicked) {
				t.Fatalf("got %v, want a PanicError", err)
			}
			if !strings.Contains(string(panicked.Stack), "engine_test.go") {
				t.Errorf("the stack does not name the place:\n%s", panicked.Stack)
			}
			if !errors.Is(err, errBug) {
				t.Errorf("what was passed to panic is not in the error: %v", err)
			}
			if len(log) == 0 || log[len(log)-1] != "Post A" {
				t.Errorf("calls: got %v, want Post A at the end", log)
			}
			if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, "False Panic: ") {
				t.Errorf("Ready: got %q, want it to tell of the panic", got)
			}
			if got := w.conditionOf(condition.Stalled); !strings.HasPrefix(got, "True Panic") {
				t.Errorf("Stalled: got %q", got)
			}
		})
	}
}

func TestPostKnowsWhatFailed(t *testing.T) {
	tests := []struct {
		name string
		do   doFunc
		want error
	}{
		{"nothing", passes, nil},
		{"a failure", failsWith(errFirst), errFirst},
		{"a wait is none", waits("Secret default/db"), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			var got error
			w.engine(posting{doing("A", test.do), func(_ context.Context, req *step.Request[*Thing]) error {
				got = req.Failure()
				return nil
			}})
			_, _ = w.reconcile()
			if !errors.Is(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPostHasTimeAfterTheContextIsDone(t *testing.T) {
	w := newWorld(t, newThing())
	ctx, cancel := context.WithCancel(context.Background())
	atPost := errors.New("Post was not called")
	e := w.engine(posting{
		doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			req.Object.Status.Size = 7
			cancel()
			return ctrl.Result{}, ctx.Err()
		}),
		func(ctx context.Context, _ *step.Request[*Thing]) error {
			atPost = ctx.Err()
			return nil
		},
	})
	if _, err := e.Reconcile(ctx, thingRequest); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if atPost != nil {
		t.Errorf("the context of Post was done: %v", atPost)
	}
	if got := w.thing().Status.Size; got != 7 {
		t.Errorf("status.size: got %d, want 7: what was done is not lost", got)
	}
	if got := w.conditionOf(condition.Ready); got != "" {
		t.Errorf("Ready: got %q, want none: that the operator stops is not the object's business", got)
	}
}

func TestResults(t *testing.T) {
	tests := []struct {
		name  string
		do    doFunc
		want  time.Duration
		how   journal.Result
		fails bool
	}{
		{"done", passes, 0, journal.ResultDone, false},
		{"look again", looksAgain(time.Minute), time.Minute, journal.ResultDone, false},
		{"wait", waits("Secret default/db"), 0, journal.ResultWaiting, false},
		{"poll", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
			return ctrlkit.PollFor("the bucket", 3*time.Second)
		}, 3 * time.Second, journal.ResultWaiting, false},
		{"exit", failsWith(ctrlkit.ErrExit), 0, journal.ResultDone, false},
		{"deprecated requeue", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
			//lint:ignore SA1019 deprecated upstream, and honoured when a step returns it
			return ctrl.Result{Requeue: true}, nil
		}, time.Second, journal.ResultDone, false},
		{"failure", failsWith(errFirst), 0, journal.ResultFailed, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", test.do))
			result, err := w.reconcile()
			if diff := cmp.Diff(reconcile.Result{RequeueAfter: test.want}, result); diff != "" {
				t.Errorf("result (-want +got):\n%s", diff)
			}
			if (err != nil) != test.fails {
				t.Errorf("error: %v", err)
			}
			if got := w.lastResult(); got != test.how {
				t.Errorf("finished: got %q, want %q", got, test.how)
			}
		})
	}
}

func TestTheSoonestTimeCounts(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		doing("A", looksAgain(time.Hour)),
		step.Group("g", doing("B", looksAgain(time.Minute)), doing("C", looksAgain(time.Second))),
		doing("D", looksAgain(time.Hour)),
	)
	if got := w.must().RequeueAfter; got != time.Second {
		t.Errorf("got %v, want %v", got, time.Second)
	}
}

func TestBackoffIsThatOfTheClass(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want time.Duration // of the first try; up to a tenth comes on top
	}{
		{"transient", errFirst, 100 * time.Millisecond},
		{"forbidden", forbiddenError(), 5 * time.Second},
		{"terminal", reconcile.TerminalError(errFirst), time.Minute},
		{"asked for", failure.Mark(errFirst, failure.WithRetryAfter(42*time.Second)), 42 * time.Second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			e := w.engine(doing("A", failsWith(test.err)))
			w.fails()
			got := e.Limiter().When(thingRequest)
			if got < test.want || got > test.want*11/10 {
				t.Errorf("the next try waits %v, want %v", got, test.want)
			}
			requeued := heard[journal.Requeued](w)
			if len(requeued) != 1 || requeued[0].After != got || requeued[0].Failures != 1 {
				t.Errorf("the journal says %+v", requeued)
			}
		})
	}
}

func TestSuccessForgetsFailures(t *testing.T) {
	w := newWorld(t, newThing())
	var err error
	e := w.engine(doing("A", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrl.Result{}, err }))
	for err = errFirst; e.Limiter().NumRequeues(thingRequest) < 3; {
		w.fails()
	}
	err = nil
	w.must()
	if got := e.Limiter().NumRequeues(thingRequest); got != 0 {
		t.Errorf("got %d failures, want 0", got)
	}
}

func TestGone(t *testing.T) {
	w := newWorld(t)
	var log []string
	w.engine(full(&log, "A", passes, passes, nil))
	if diff := cmp.Diff(reconcile.Result{}, w.must()); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if len(log) > 0 || w.lastResult() != journal.ResultGone {
		t.Errorf("calls %v, finished %q", log, w.lastResult())
	}
}

func TestReadFails(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("get Thing", errFirst)
	var log []string
	w.engine(full(&log, "A", passes, passes, nil))
	if err := w.fails(); !errors.Is(err, errFirst) || !strings.Contains(err.Error(), "Thing default/a") {
		t.Errorf("got %v, want what was being done and why it failed", err)
	}
	if len(log) > 0 || len(w.takeWrites()) > 0 {
		t.Errorf("something was done: %v", log)
	}
}

func TestTheCacheIsNotChanged(t *testing.T) {
	w := newWorld(t, newThing())
	cached := newThing()
	cached.ResourceVersion = w.thing().ResourceVersion
	cached.Status.Counters = map[string]int{"a": 1}
	w.cache[thingRequest.NamespacedName] = cached
	w.engine(doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		req.Object.Status.Counters["a"]++
		req.Object.Labels = map[string]string{"x": "y"}
		if got := req.Snapshot().Status.Counters["a"]; got != 1 {
			t.Errorf("the snapshot has changed: %d", got)
		}
		return ctrlkit.NoRequeue()
	}))
	w.must()
	if cached.Status.Counters["a"] != 1 || cached.Labels != nil {
		t.Errorf("the cached object was changed: %+v", cached)
	}
}

func TestTypedData(t *testing.T) {
	first, second := step.NewKey[int]("same"), step.NewKey[int]("same")
	text := step.NewKey[string]("text")
	w := newWorld(t, newThing())
	w.engine(
		doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			if _, ok := step.Lookup(req, first); ok {
				t.Error("something is there from another reconcile")
			}
			step.Put(req, first, 1)
			step.Put(req, text, "one")
			step.Put(req, text, "two")
			return ctrlkit.NoRequeue()
		}),
		doing("B", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			if got, ok := step.Lookup(req, first); got != 1 || !ok {
				t.Errorf("first: got %d, %v", got, ok)
			}
			if got, ok := step.Lookup(req, second); got != 0 || ok {
				t.Errorf("a key of the same name: got %d, %v", got, ok)
			}
			if got, ok := step.Lookup(req, text); got != "two" || !ok {
				t.Errorf("text: got %q, %v", got, ok)
			}
			return ctrlkit.NoRequeue()
		}),
	)
	w.must()
	w.must()
	if first.String() != "same" {
		t.Errorf("the key calls itself %q", first)
	}
}

func TestObjectsAreReconciledBesideOneAnother(t *testing.T) {
	var objects []*Thing
	w := newWorld(t)
	for i := range 8 {
		obj := newThing()
		obj.Name, obj.UID = fmt.Sprint("t", i), types.UID(fmt.Sprint("uid-", i))
		w.create(obj)
		objects = append(objects, obj)
	}
	e := w.engine(cleaning("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		req.Object.Status.Size = len(req.Object.Name)
		return ctrlkit.NoRequeue()
	}, passes))
	done := make(chan error)
	for _, obj := range objects {
		go func() {
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: obj.Namespace, Name: obj.Name}}
			_, err := e.Reconcile(context.Background(), request)
			_, again := e.Reconcile(context.Background(), request)
			done <- errors.Join(err, again)
		}()
	}
	for range objects {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestTheJournalTellsSteps(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		doing("A", passes),
		step.When("never", never, doing("B", passes)),
		doing("C", waits("Secret default/db")),
		doing("D", passes),
	)
	w.must()
	var got []string
	for _, entry := range w.entries {
		if text := entry.Event.String(); !strings.HasPrefix(text, "read") {
			got = append(got, text)
		}
	}
	want := []string{
		"started, because of start",
		"Do of A begins", "Do of A done",
		"B is skipped: its condition does not hold",
		"Do of C begins", "Do of C waits for Secret default/db",
		"D is not reached: C did not pass",
		"patch status of Thing default/a (.status.conditions, .status.observedGeneration)",
		"finished: waiting",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}

// Whatever the steps return, in any order and nesting: at most one patch of the metadata besides
// that of the finalizer, and one of the status, every cause in the error, Post of every step, the
// finalizer before any Do, and the object goes when, and only when, its clean-up has passed.
func TestAnySequenceOfOutcomes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := &sequence{rt: rt, deleted: rapid.Bool().Draw(rt, "deleted")}
		obj := newThing()
		if s.deleted {
			obj = deletedThing(finalizer)
		}
		s.world = newWorld(rt, obj)
		steps := s.steps(0, "")
		s.world.engine(steps...)
		for range rapid.IntRange(1, 3).Draw(rt, "reconciles") {
			s.reconcile()
		}
	})
}

// A sequence is steps with random outcomes, and what was seen of them in a reconcile.
type sequence struct {
	rt      *rapid.T
	world   *world
	deleted bool
	all     int  // steps
	cleans  bool // one of them is a Cleaner

	// What will happen is drawn before each reconcile: the engine would catch the panics by which
	// rapid ends a run.
	draws    []func()
	outcomes map[string]string
	changes  map[string]bool

	causes   []error
	panicked bool
	waited   bool
	posts    []string
	stopped  bool // a clean-up did not pass
}

func (s *sequence) steps(depth int, prefix string) []step.Step[*Thing] {
	var steps []step.Step[*Thing]
	for i := range rapid.IntRange(1, 3).Draw(s.rt, "steps") {
		name := fmt.Sprint(prefix, i)
		kinds := []string{"plain", "cleaner"}
		if depth < 2 {
			kinds = append(kinds, "group", "when", "never")
		}
		switch kind := rapid.SampledFrom(kinds).Draw(s.rt, name); kind {
		case "group":
			steps = append(steps, step.GroupOrdered(name, s.steps(depth+1, name+".")...)) // they change the same fields
		case "when":
			steps = append(steps, step.When(name, always, s.steps(depth+1, name+".")...))
		case "never":
			cleans := s.cleans
			steps = append(steps, step.When(name, never, s.steps(depth+1, name+".")...))
			s.cleans = cleans || s.deleted && s.cleans
		default:
			s.all++
			s.draws = append(s.draws, func() {
				s.outcomes["Do "+name] = rapid.SampledFrom([]string{"ok", "ok", "ok", "error", "wait", "requeue", "again", "panic"}).Draw(s.rt, "Do "+name)
				s.outcomes["Cleanup "+name] = rapid.SampledFrom([]string{"ok", "ok", "ok", "error", "wait", "requeue", "panic"}).Draw(s.rt, "Cleanup "+name)
				s.outcomes["Post "+name] = rapid.SampledFrom([]string{"ok", "ok", "error", "panic"}).Draw(s.rt, "Post "+name)
				s.changes["status "+name] = rapid.Bool().Draw(s.rt, name+" changes the status")
				s.changes["metadata "+name] = rapid.Bool().Draw(s.rt, name+" changes the metadata")
			})
			post := func(context.Context, *step.Request[*Thing]) error {
				s.posts = append(s.posts, name)
				_, err := s.outcome("Post " + name)
				return err
			}
			do := func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
				if s.cleans && !slices.Contains(s.world.thing().Finalizers, finalizer) {
					s.rt.Error("a Do before the finalizer")
				}
				s.change(name, req.Object)
				return s.outcome("Do " + name)
			}
			cleanup := func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
				s.change(name, req.Object)
				result, err := s.outcome("Cleanup " + name)
				s.stopped = s.stopped || err != nil || result.RequeueAfter > 0
				return result, err
			}
			if kind == "plain" {
				steps = append(steps, posting{doing(name, do), post})
				continue
			}
			s.cleans = true
			steps = append(steps, poster{cleaner{doing(name, do), cleanup}, post})
		}
	}
	return steps
}

func (s *sequence) change(name string, obj *Thing) {
	if s.changes["status "+name] {
		obj.Status.Size++
	}
	if s.changes["metadata "+name] {
		obj.Annotations = map[string]string{"n": fmt.Sprint(len(obj.Annotations["n"]), obj.ResourceVersion)}
	}
}

func (s *sequence) outcome(what string) (ctrl.Result, error) {
	switch s.outcomes[what] {
	case "error":
		err := errors.New(what)
		s.causes = append(s.causes, err)
		return ctrl.Result{}, err
	case "panic":
		err := errors.New(what)
		s.causes, s.panicked, s.stopped = append(s.causes, err), true, s.stopped || strings.HasPrefix(what, "Cleanup")
		panic(err)
	case "wait":
		s.waited = true
		return ctrlkit.WaitFor(what)
	case "requeue":
		return ctrlkit.RequeueAfter(time.Minute)
	case "again":
		return ctrlkit.ContinueAndRequeueAfter(time.Minute)
	default:
		return ctrlkit.NoRequeue()
	}
}

func (s *sequence) reconcile() {
	if s.world.thing() == nil {
		return
	}
	s.outcomes, s.changes = make(map[string]string), make(map[string]bool)
	for _, draw := range s.draws {
		draw()
	}
	s.causes, s.posts, s.panicked, s.waited, s.stopped = nil, nil, false, false, false
	s.world.takeWrites()
	mostMetadata := 1
	if s.cleans && !slices.Contains(s.world.thing().Finalizers, finalizer) {
		mostMetadata = 2 // the finalizer, and what the steps have changed
	}
	result, err := s.world.reconcile()
	if s.world.lastResult() == journal.ResultWaiting && len(s.posts) == 0 {
		return // it is slowed down
	}
	for _, cause := range s.causes {
		if !errors.Is(err, cause) {
			s.rt.Errorf("%v is not in the error: %v", cause, err)
		}
	}
	if len(s.causes) == 0 && err != nil {
		s.rt.Errorf("nothing has failed, and the error is %v", err)
	}
	if err != nil && result != (reconcile.Result{}) {
		s.rt.Errorf("a result beside an error: %v", result)
	}
	var panicked *ctrlkit.PanicError
	if s.panicked != errors.As(err, &panicked) {
		s.rt.Errorf("panicked: %v, error: %v", s.panicked, err)
	}
	writes := s.world.takeWrites()
	if count(writes, "patch Thing a") > mostMetadata || count(writes, "patch status of Thing a") > 1 || len(writes) > mostMetadata+1 {
		s.rt.Errorf("writes: %v", writes)
	}
	if len(s.posts) != s.all || !slices.IsSorted(s.posts) {
		s.rt.Errorf("Post was called for %v, of %d steps", s.posts, s.all)
	}
	if s.deleted && s.cleans {
		if gone := s.world.thing() == nil; gone == s.stopped {
			s.rt.Errorf("the object is gone: %v, a clean-up did not pass: %v", gone, s.stopped)
		}
		return
	}
	ready := s.world.conditionOf(condition.Ready)
	if bad := len(s.causes) > 0 || s.waited; !s.deleted && bad != strings.HasPrefix(ready, "False ") && !strings.Contains(ready, "wants to be run again") {
		s.rt.Errorf("Ready is %q; failures %v, waits %v", ready, s.causes, s.waited)
	}
}

// controller-runtime drops what it finds to be terminal. The engine tries it again, slowly.
func TestTerminalErrorsAreTriedAgain(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", failsWith(reconcile.TerminalError(fmt.Errorf("quota: %w", errFirst)))))
	err := w.fails()
	if errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("%v is terminal for controller-runtime", err)
	}
	if action := (*ctrlkit.ActionError)(nil); !errors.Is(err, errFirst) || !errors.As(err, &action) {
		t.Errorf("%v does not show what it is made of", err)
	}
	if got := w.conditionOf(condition.Stalled); !strings.HasPrefix(got, "True TerminalError: ") {
		t.Errorf("Stalled is %q", got)
	}
}
