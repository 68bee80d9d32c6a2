// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

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
	same(t, "conditions", want, w.thing().Status.Conditions, ignore)
	same(t, "the condition of another has changed", foreign, *meta.FindStatusCondition(w.thing().Status.Conditions, foreign.Type))
}

func TestReadyReconcilingStalled(t *testing.T) {
	set := func(severity condition.Severity) doFunc {
		return does(func(_ context.Context, req *request) {
			req.Conditions.MarkUnhealthy("Found", severity, "NotFound", "there is no Secret")
		})
	}
	healthy := does(func(_ context.Context, req *request) { req.Conditions.MarkHealthy("Found", "Found", "") })
	then := func(first, second doFunc) doFunc {
		return func(ctx context.Context, req *request) (ctrl.Result, error) {
			_, _ = first(ctx, req)
			return second(ctx, req)
		}
	}
	tests := []struct {
		name                        string
		do                          doFunc
		ready, reconciling, stalled string
	}{
		{"healthy", healthy, "True Ready", "", ""},
		{"not reached", passes, "False NotReached: Found: not evaluated yet", "True NotReached: Found: not evaluated yet", ""},
		{"info", set(condition.SeverityInfo), "False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", ""},
		{"warning", set(condition.SeverityWarning), "False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", ""},
		{"error", set(condition.SeverityError), "False NotFound: Found: there is no Secret", "", "True NotFound: Found: there is no Secret"},
		{"an error of its own", then(healthy, failsWith(errFirst)),
			"False TemporaryError: A: the first thing broke", "True TemporaryError: A: the first thing broke", ""},
		{"a terminal error of its own", then(healthy, failsWith(reconcile.TerminalError(errFirst))),
			"False TerminalError: A: terminal error: the first thing broke", "", "True TerminalError: A: terminal error: the first thing broke"},
		{"a condition that is worse than the error", then(set(condition.SeverityError), failsWith(errFirst)),
			"False NotFound: Found: there is no Secret", "", "True NotFound: Found: there is no Secret"},
		{"a wait", then(healthy, waits("Secret default/db")), "False Waiting: waits for Secret default/db", "True Waiting: waits for Secret default/db", ""},
		{"a wait that a condition explains", then(set(condition.SeverityInfo), waits("Secret default/db")),
			"False NotFound: Found: there is no Secret", "True NotFound: Found: there is no Secret", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			obj.Generation = 4
			w := newWorld(t, obj)
			w.engine(keeping("A", test.do, "Found"))
			_, _ = w.reconcile()
			for kind, want := range map[string]string{"Ready": test.ready, "Reconciling": test.reconciling, "Stalled": test.stalled} {
				w.is(kind, want)
			}
			same(t, "status.observedGeneration", 4, w.thing().Status.ObservedGeneration)
			same(t, "observedGeneration of Ready", 4, meta.FindStatusCondition(w.thing().Status.Conditions, "Ready").ObservedGeneration)
		})
	}
}

func TestAllWaitsOfAGroupAreNamed(t *testing.T) {
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
	w.begins(condition.Ready, "False ")
	w = newWorld(t, newThing())
	w.engine(doing("B", passes), doing("A", again(time.Minute)))
	w.must()
	w.is(condition.Ready, "True Ready")
}

func TestObservedGenerationOfDeclaredConditions(t *testing.T) {
	w := newWorld(t, newThing())
	err := error(nil)
	once := false
	w.engine(keeping("A", func(_ context.Context, req *request) (ctrl.Result, error) {
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
	same(t, "after a failure", 1, observed())
	err = nil
	w.must()
	same(t, "after success", 2, observed())
}

func TestTransitionTimesMoveWithTheStatus(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, newThing())
		var err error
		w.engine(doing("A", func(context.Context, *request) (ctrl.Result, error) { return ctrl.Result{}, err }))
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
	must(t, err)
	if _, err := e.Reconcile(t.Context(), thingRequest); !errors.Is(err, errFirst) {
		t.Errorf("got %v", err)
	}
	got := &corev1.ConfigMap{}
	if err := w.server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"}, got); err != nil || got.Labels["seen"] != "true" {
		t.Errorf("got %v, %v", got.Labels, err)
	}
	w.wrote("patch ConfigMap a")
}
