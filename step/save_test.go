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
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// changing returns a Do that changes the object.
func changing(change func(obj *Thing)) doFunc {
	return func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		change(req.Object)
		return ctrlkit.NoRequeue()
	}
}

func TestWrites(t *testing.T) {
	label := func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7") }
	size := func(obj *Thing) { obj.Status.Size = 7 }
	tests := []struct {
		name string
		step step.Step[*Thing]
		want []string
	}{
		{"conditions", doing("A", passes), []string{"patch status of Thing a"}},
		{"status", doing("A", changing(size)), []string{"patch status of Thing a"}},
		{"status after an error", doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			size(req.Object)
			return ctrl.Result{}, errFirst
		}), []string{"patch status of Thing a"}},
		{"metadata", doing("A", changing(label)), []string{"patch Thing a", "patch status of Thing a"}},
		{"both", doing("A", changing(func(obj *Thing) { label(obj); size(obj) })), []string{"patch Thing a", "patch status of Thing a"}},
		{"from Post", posting{doing("A", passes), func(_ context.Context, req *step.Request[*Thing]) error {
			label(req.Object)
			size(req.Object)
			return nil
		}}, []string{"patch Thing a", "patch status of Thing a"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(test.step)
			_, _ = w.reconcile()
			if diff := cmp.Diff(test.want, w.takeWrites()); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			before := w.thing()
			_, _ = w.reconcile()
			if got := w.takeWrites(); len(got) > 0 {
				t.Errorf("nothing has changed, and it wrote %v", got)
			}
			if diff := cmp.Diff(before, w.thing()); diff != "" {
				t.Errorf("the object has changed:\n%s", diff)
			}
		})
	}
}

// What a step records in the metadata is saved by the reconcile that has done it, also by the one
// that has written the finalizer: the next would do it again.
func TestMetadataIsSavedBesideTheFinalizer(t *testing.T) {
	w := newWorld(t, newThing())
	made := 0
	w.engine(cleaning("A", changing(func(obj *Thing) {
		if obj.Annotations["id"] == "" {
			made++
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, "id", fmt.Sprint("bucket-", made))
		}
		obj.Status.Size = 7
	}), passes))
	if got := w.must(); got.RequeueAfter != 0 {
		t.Errorf("the next reconcile is after %v", got.RequeueAfter)
	}
	if obj := w.thing(); obj.Annotations["id"] != "bucket-1" || obj.Status.Size != 7 || !slices.Contains(obj.Finalizers, finalizer) {
		t.Errorf("after the first reconcile: %+v", obj)
	}
	if diff := cmp.Diff([]string{"patch Thing a", "patch Thing a", "patch status of Thing a"}, w.takeWrites()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	w.must()
	if got := w.takeWrites(); made != 1 || len(got) > 0 {
		t.Errorf("%d buckets were made, and the second reconcile wrote %v", made, got)
	}
}

func TestAStepMayKeepFinalizersOfItsOwn(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		cleaning("A", changing(func(obj *Thing) {
			if !slices.Contains(obj.Finalizers, foreignFinalizer) {
				obj.Finalizers = append(obj.Finalizers, foreignFinalizer)
			}
		}), passes))
	w.must()
	w.must()
	w.must()
	if diff := cmp.Diff([]string{finalizer, foreignFinalizer}, w.thing().Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
}

func TestNothingNewerIsOverwritten(t *testing.T) {
	tests := []struct {
		name string
		do   func(obj *Thing)
	}{
		{"the status", func(obj *Thing) { obj.Status.Size++ }},
		{"the metadata", func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "us"); obj.Status.Size++ }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			interfere := true
			w.engine(doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
				test.do(req.Object)
				if interfere {
					w.edit(func(obj *Thing) { metav1.SetMetaDataLabel(&obj.ObjectMeta, "by", "them") })
					w.editStatus(func(obj *Thing) { obj.Status.Size = 42 })
				}
				return ctrlkit.NoRequeue()
			}))
			w.conflicts()
			if got := w.thing(); got.Labels["by"] != "them" || got.Status.Size != 42 || len(got.Status.Conditions) > 0 {
				t.Errorf("it was overwritten: %v", got)
			}
			if got := w.takeWrites(); len(got) != 2 || !strings.HasPrefix(got[1], "patch Thing") {
				t.Errorf("writes: %v, want one that was refused, and one that changes nothing and is answered with the newest version", got)
			}
			interfere = false
			w.must()
			if got := w.thing().Status.Size; got != 43 {
				t.Errorf("status.size: got %d, want 43", got)
			}
		})
	}
}

func TestConflictsAreSilentAtFirst(t *testing.T) {
	w := newWorld(t, newThing())
	err := error(nil)
	w.engine(doing("A", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrl.Result{}, err }))
	w.must()
	w.takeWrites()
	err = fmt.Errorf("writing the child: %w", conflictError())
	for i := 1; i < 6; i++ {
		w.conflicts()
		if got := w.conditionOf(condition.Ready); got != "True Ready" {
			t.Fatalf("after %d conflicts Ready is %q", i, got)
		}
	}
	if got := w.takeWrites(); len(got) > 0 {
		t.Errorf("writes: %v", got)
	}
	w.fails()
	if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, "False Conflict: ") {
		t.Errorf("after 6 conflicts Ready is %q", got)
	}
}

func TestStatusIsKeptWhenTheMetadataCantBeWritten(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("patch Thing", forbiddenError())
	w.engine(doing("A", changing(func(obj *Thing) {
		metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7")
		obj.Status.Size = 7
	})))
	if err := w.fails(); !strings.Contains(err.Error(), "writing the metadata") || failure.Classify(err).Class != failure.ClassForbidden {
		t.Errorf("got %v", err)
	}
	if got := w.thing().Status.Size; got != 7 {
		t.Errorf("status.size: got %d, want 7", got)
	}
	if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, "False Forbidden: writing the metadata: ") {
		t.Errorf("Ready: got %q", got)
	}
	w.takeWrites()
	w.fails()
	if diff := cmp.Diff([]string{"patch Thing a"}, w.takeWrites()); diff != "" {
		t.Errorf("the same again: writes (-want +got):\n%s", diff)
	}
	w.fault = nil
	w.must()
	if got := w.conditionOf(condition.Ready); got != "True Ready" || w.thing().Labels["size"] != "7" {
		t.Errorf("Ready: got %q, labels %v", got, w.thing().Labels)
	}
}

func TestTheStatusCantBeWritten(t *testing.T) {
	for _, err := range []error{errFirst, forbiddenError()} {
		w := newWorld(t, newThing())
		w.fault = failOn("patch status", err)
		w.engine(doing("A", changing(func(obj *Thing) { obj.Status.Size = 7 })))
		if got := w.fails(); !errors.Is(got, err) || !strings.Contains(got.Error(), "writing the status") {
			t.Errorf("got %v", got)
		}
	}
}

func TestTheObjectGoesMeanwhile(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) {
		w.remove(newThing())
		return ctrlkit.NoRequeue()
	}))
	w.conflicts()
	w.must()
	if got := w.lastResult(); got != journal.ResultGone {
		t.Errorf("finished: %q", got)
	}
}

func TestWhatIsNotOursIsRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(obj *Thing)
		want   string
	}{
		{"spec", func(obj *Thing) { obj.Spec.Size = 3 }, ".spec.size"},
		{"metadata", func(obj *Thing) { obj.GenerateName = "other-" }, ".metadata.generateName"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, newThing())
			w.engine(doing("A", changing(func(obj *Thing) {
				test.change(obj)
				obj.Status.Size = 7
				metav1.SetMetaDataLabel(&obj.ObjectMeta, "size", "7")
			})))
			err := w.fails()
			if !errors.Is(err, step.ErrReadOnlyField) || !strings.Contains(err.Error(), test.want) || failure.Classify(err).Class != failure.ClassTerminal {
				t.Errorf("got %v, want ErrReadOnlyField and %q", err, test.want)
			}
			got := w.thing()
			if got.Spec.Size != 0 || got.GenerateName != "" {
				t.Errorf("it was written: %+v", got)
			}
			if got.Status.Size != 7 || got.Labels["size"] != "7" {
				t.Errorf("what is ours was not written: %+v", got)
			}
			if ready := w.conditionOf(condition.Ready); !strings.HasPrefix(ready, "False TerminalError: ") || !strings.Contains(ready, test.want) {
				t.Errorf("Ready: got %q", ready)
			}
			w.takeWrites()
			w.fails()
			if again := w.takeWrites(); len(again) > 0 {
				t.Errorf("the same again wrote %v", again)
			}
		})
	}
}

func TestConditionsAreInitialisedAndRetired(t *testing.T) {
	obj := newThing()
	foreign := metav1.Condition{
		Type: "example.com/Scanned", Status: metav1.ConditionTrue, Reason: "Clean", ObservedGeneration: 1,
		LastTransitionTime: metav1.NewTime(time.Date(2020, 1, 1, 0, 0, 0, 0, time.Local)),
	}
	obj.Status.Conditions = []metav1.Condition{foreign, {Type: "Old", Status: metav1.ConditionTrue, Reason: "Old", LastTransitionTime: foreign.LastTransitionTime}}
	w := newWorld(t, obj)
	options := w.options()
	options.Retired = []string{"Old", "NeverThere", "Found"}
	w.engineWith(options, keeping("A", waits("Secret default/db"), "Found", "Filled"))
	w.must()
	want := []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Waiting", Message: "waits for Secret default/db"},
		{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Waiting", Message: "waits for Secret default/db"},
		{Type: "Found", Status: metav1.ConditionUnknown, Reason: "NotReached", Message: "not evaluated yet"},
		{Type: "Filled", Status: metav1.ConditionUnknown, Reason: "NotReached", Message: "not evaluated yet"},
		foreign,
	}
	ignore := cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime", "ObservedGeneration")
	if diff := cmp.Diff(want, w.thing().Status.Conditions, ignore); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(foreign, *meta.FindStatusCondition(w.thing().Status.Conditions, foreign.Type)); diff != "" {
		t.Errorf("the condition of another has changed (-want +got):\n%s", diff)
	}
}

func TestReadyAndItsKin(t *testing.T) {
	set := func(severity condition.Severity) doFunc {
		return func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			req.Conditions.MarkUnhealthy("Found", severity, "NotFound", "there is no Secret")
			return ctrlkit.NoRequeue()
		}
	}
	good := func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		req.Conditions.MarkHealthy("Found", "Found", "")
		return ctrlkit.NoRequeue()
	}
	then := func(first, second doFunc) doFunc {
		return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			_, _ = first(ctx, req)
			return second(ctx, req)
		}
	}
	tests := []struct {
		name                        string
		do                          doFunc
		ready, reconciling, stalled string
	}{
		{"good", good, "True Ready", "", ""},
		{"not reached", passes, "False NotReached: Found: not evaluated yet", "True NotReached: Found: not evaluated yet", ""},
		{"info", set(condition.SeverityInfo), "False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", ""},
		{"warning", set(condition.SeverityWarning), "False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", ""},
		{"error", set(condition.SeverityError), "False NotFound: Found: there is no Secret", "", "True NotFound: Found: there is no Secret"},
		{
			"an error of its own", then(good, failsWith(errFirst)),
			"False TemporaryError: A: the first thing broke", "True TemporaryError: A: the first thing broke", "",
		},
		{
			"a terminal error of its own", then(good, failsWith(reconcile.TerminalError(errFirst))),
			"False TerminalError: A: terminal error: the first thing broke", "", "True TerminalError: A: terminal error: the first thing broke",
		},
		{
			"a condition that is worse than the error", then(set(condition.SeverityError), failsWith(errFirst)),
			"False NotFound: Found: there is no Secret", "", "True NotFound: Found: there is no Secret",
		},
		{"a wait", then(good, waits("Secret default/db")), "False Waiting: waits for Secret default/db", "True Waiting: waits for Secret default/db", ""},
		{
			"a wait that a condition explains", then(set(condition.SeverityInfo), waits("Secret default/db")),
			"False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", "",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			obj.Generation = 4
			w := newWorld(t, obj)
			w.engine(keeping("A", test.do, "Found"))
			_, _ = w.reconcile()
			for kind, want := range map[string]string{"Ready": test.ready, "Reconciling": test.reconciling, "Stalled": test.stalled} {
				if got := w.conditionOf(kind); got != want {
					t.Errorf("%s: got %q, want %q", kind, got, want)
				}
			}
			if got := w.thing().Status.ObservedGeneration; got != 4 {
				t.Errorf("status.observedGeneration: got %d, want 4", got)
			}
			if got := meta.FindStatusCondition(w.thing().Status.Conditions, "Ready").ObservedGeneration; got != 4 {
				t.Errorf("observedGeneration of Ready: got %d, want 4", got)
			}
		})
	}
}

func TestWaitsOfAGroupAreAllTold(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(step.Group("g", doing("A", waits("Secret default/db")), doing("B", waits("Secret default/db")), doing("C", waits("the bucket"))))
	w.must()
	if got, want := w.conditionOf(condition.Ready), "False Waiting: waits for Secret default/db; the bucket"; got != want {
		t.Errorf("Ready: got %q, want %q", got, want)
	}
}

// A reconcile that is interrupted on purpose has not done what the spec wants.
func TestNotReadyBeforeAllStepsAreReached(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(doing("A", again(time.Minute)), doing("B", passes))
	w.must()
	if got := w.conditionOf(condition.Ready); !strings.HasPrefix(got, "False ") {
		t.Errorf("Ready: got %q although B was not reached", got)
	}
	w = newWorld(t, newThing())
	w.engine(doing("B", passes), doing("A", again(time.Minute)))
	w.must()
	if got := w.conditionOf(condition.Ready); got != "True Ready" {
		t.Errorf("Ready: got %q although all steps were reached", got)
	}
}

func TestObservedGenerationOfDeclaredConditions(t *testing.T) {
	w := newWorld(t, newThing())
	err := error(nil)
	once := false
	w.engine(keeping("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		if !once { // later it stays as it is
			req.Conditions.MarkHealthy("Found", "Found", "")
			once = true
		}
		return ctrl.Result{}, err
	}, "Found"))
	w.must()
	observed := func() int64 { return meta.FindStatusCondition(w.thing().Status.Conditions, "Found").ObservedGeneration }
	w.edit(func(obj *Thing) { obj.Spec.Size = 1 })
	err = errFirst
	w.fails()
	if got := observed(); got != 1 {
		t.Errorf("after a failure: got %d, want 1: nobody has looked at it for generation 2", got)
	}
	err = nil
	w.must()
	if got := observed(); got != 2 {
		t.Errorf("after success: got %d, want 2", got)
	}
}

func TestTransitionTimesMoveWithTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var err error
		w.engine(doing("A", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrl.Result{}, err }))
		w.must()
		changed := func() time.Time {
			return meta.FindStatusCondition(w.thing().Status.Conditions, "Ready").LastTransitionTime.UTC()
		}
		start := time.Now().UTC()
		pass(time.Minute)
		w.edit(func(obj *Thing) { obj.Spec.Size = 1 })
		w.must()
		if got := changed(); !got.Equal(start) {
			t.Errorf("still Ready: got %v, want %v", got, start)
		}
		err = errFirst
		w.fails()
		if got, want := changed(), start.Add(time.Minute); !got.Equal(want) {
			t.Errorf("not Ready any more: got %v, want %v", got, want)
		}
		pass(time.Minute)
		err = forbiddenError()
		w.fails()
		if got, want := changed(), start.Add(time.Minute); !got.Equal(want) {
			t.Errorf("not Ready for another reason: got %v, want %v", got, want)
		}
	})
}

// An error whose text changes at each try makes no write at each try.
func TestNoStatusStorm(t *testing.T) {
	t.Parallel()
	// words is a source of random words that is the same in each run of the test.
	seed := uint32(1)
	word := func() string {
		letters := make([]byte, 8)
		for i := range letters {
			seed = seed*1664525 + 1013904223
			letters[i] = 'a' + byte(seed>>24)%26
		}
		return string(letters)
	}
	texts := map[string]func(i int) string{
		"numbers": func(i int) string { return fmt.Sprintf("request %d failed after %v", i, time.Duration(i)) },
		"words":   func(int) string { return "the server says " + word() + " " + word() },
	}
	dos := map[string]func(req *step.Request[*Thing], text string) (ctrl.Result, error){
		"error": func(_ *step.Request[*Thing], text string) (ctrl.Result, error) {
			return ctrl.Result{}, errors.New(text)
		},
		"condition and error": func(req *step.Request[*Thing], text string) (ctrl.Result, error) {
			req.Conditions.MarkUnhealthy("Found", condition.SeverityWarning, "Failing", text)
			return ctrl.Result{}, errors.New(text)
		},
		"several errors": func(_ *step.Request[*Thing], text string) (ctrl.Result, error) {
			return ctrl.Result{}, errors.Join(errors.New(text), errFirst)
		},
	}
	for textName, text := range texts {
		for doName, do := range dos {
			t.Run(doName+" with "+textName, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					w := newWorld(t, newThing())
					options := w.options()
					options.Observers = nil
					i := 0
					w.engineWith(options, keeping("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
						i++
						return do(req, text(i))
					}, "Found"))
					reconciles, writes := 300, 0
					if textName == "words" && doName == "error" {
						reconciles = 10000
					}
					for range reconciles {
						w.fails()
						if len(w.writes) != writes { // from then on the cache has it; to ask the fake client each time takes its time
							writes = len(w.writes)
							w.cache[thingRequest.NamespacedName] = w.thing()
						}
						pass(10 * time.Millisecond)
					}
					if got := len(w.takeWrites()); got == 0 || got > 4 {
						t.Errorf("%d writes in %d reconciles", got, reconciles)
					}
					if got := len(w.takeEvents()); got == 0 || got > 4 {
						t.Errorf("%d events in %d reconciles", got, reconciles)
					}
				})
			})
		}
	}
}

// That texts are held does not hide that something else is wrong now, or that the text is old.
func TestHeldTexts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var err error
		w.engine(doing("A", func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrl.Result{}, err }))
		ready := func(next error) string {
			err = next
			_, _ = w.reconcile()
			return w.conditionOf(condition.Ready)
		}
		for _, step := range []struct {
			after time.Duration
			err   error
			want  string
		}{
			{0, errFirst, "False TemporaryError: A: the first thing broke"},
			{time.Second, errSecond, "False TemporaryError: A: the second thing broke"},
			{time.Second, errThird, "False TemporaryError: A: the second thing broke"},
			{10 * time.Minute, errThird, "False TemporaryError: A: the third thing broke"},
			{time.Second, failure.Mark(errFirst, failure.WithReason("Quota")), "False Quota: A: the first thing broke"},
			{time.Second, nil, "True Ready"},
		} {
			pass(step.after)
			if got := ready(step.err); got != step.want {
				t.Errorf("got %q, want %q", got, step.want)
			}
		}
	})
}

func TestEventsTellTransitionsOnce(t *testing.T) {
	w := newWorld(t, newThing())
	var do doFunc
	w.engine(keeping("A", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) { return do(ctx, req) }, "Found"))
	bad := func(severity condition.Severity, reason string) doFunc {
		return func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			req.Conditions.MarkUnhealthy("Found", severity, reason, "there is no Secret")
			return ctrlkit.NoRequeue()
		}
	}
	good := func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
		req.Conditions.MarkHealthy("Found", "Found", "")
		return ctrlkit.NoRequeue()
	}
	for _, test := range []struct {
		name string
		do   doFunc
		want []string
	}{
		{"it begins well", good, nil},
		{"a condition becomes bad", bad(condition.SeverityWarning, "NotFound"), []string{"NotFound: there is no Secret"}},
		{"it stays bad", bad(condition.SeverityWarning, "NotFound"), nil},
		{"for another reason", bad(condition.SeverityWarning, "Empty"), []string{"Empty: there is no Secret"}},
		{"something worse besides", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			_, _ = bad(condition.SeverityWarning, "Empty")(ctx, req)
			return ctrl.Result{}, forbiddenError()
		}, []string{`Forbidden: A: things.test.example.com "a" is forbidden: no permission (and 1 more)`}},
		{"what is worse is over", bad(condition.SeverityWarning, "Empty"), nil},
		{"it is on its way", bad(condition.SeverityInfo, "Pending"), nil},
		{"it becomes good", good, nil},
		{"an error", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			_, _ = good(ctx, req)
			return ctrl.Result{}, errFirst
		}, []string{"TemporaryError: A: the first thing broke"}},
		{"the error stays", failsWith(errFirst), nil},
		{"a wait is none", func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			_, _ = good(ctx, req)
			return ctrlkit.WaitFor("the bucket")
		}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			do = test.do
			_, _ = w.reconcile()
			if diff := cmp.Diff(test.want, w.takeEvents(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNoEventForWhatWasNotWritten(t *testing.T) {
	w := newWorld(t, newThing())
	w.fault = failOn("patch status", conflictError())
	w.engine(doing("A", failsWith(errFirst)))
	w.fails()
	if got := w.takeEvents(); len(got) > 0 {
		t.Errorf("events: %v", got)
	}
	w.fault = nil
	w.fails()
	if diff := cmp.Diff([]string{"TemporaryError: A: the first thing broke"}, w.takeEvents()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A type without conditions works, too.
func TestATypeWithoutConditions(t *testing.T) {
	w := newWorld(t, configMap("a", nil))
	e, err := step.New(step.Options[*corev1.ConfigMap]{Name: "maps", Client: w.client, Recorder: w},
		step.Func("A", func(_ context.Context, req *step.Request[*corev1.ConfigMap]) (ctrl.Result, error) {
			if req.Conditions != nil {
				t.Error("there are conditions")
			}
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "seen", "true")
			return ctrl.Result{}, errFirst
		}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Reconcile(t.Context(), thingRequest); !errors.Is(err, errFirst) {
		t.Errorf("got %v", err)
	}
	got := &corev1.ConfigMap{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, got); err != nil || got.Labels["seen"] != "true" {
		t.Errorf("got %v, %v", got.Labels, err)
	}
	if diff := cmp.Diff([]string{"patch ConfigMap a"}, w.takeWrites()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// A new text that is due is written, also when the conditions are computed a second time because
// something could not be saved. Of two failures that are as bad the first is told.
func TestANewTextBesideAFailureToSave(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		w.fault = failOn("patch Thing", errThird)
		err := errFirst
		w.engine(doing("A", func(_ context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
			metav1.SetMetaDataLabel(&req.Object.ObjectMeta, "size", "7")
			return ctrl.Result{}, err
		}))
		w.fails()
		pass(11 * time.Minute)
		err = errSecond
		w.fails()
		want := "False TemporaryError: A: the second thing broke"
		if got := w.conditionOf(condition.Ready); got != want {
			t.Errorf("Ready: got %q, want %q", got, want)
		}
	})
}
