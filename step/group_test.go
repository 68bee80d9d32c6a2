package step_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestGroupAndWhen(t *testing.T) {
	tests := []struct {
		name   string
		delete bool
		steps  func(step func(name string, do doFunc) step.Step[*Thing]) []step.Step[*Thing]
		want   []string // without Post, which is called for all
	}{
		{"a group runs all", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.Group("g", s("A", failsWith(errFirst)), s("B", waits("x")), s("C", passes)), s("D", passes)}
		}, []string{"Do A", "Do B", "Do C"}},
		{"what follows a group is reached when all have passed", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.Group("g", s("A", passes), s("B", passes)), s("C", passes)}
		}, []string{"Do A", "Do B", "Do C"}},
		{"a group waits with what follows it", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.Group("g", s("A", waits("x")), s("B", passes)), s("C", passes)}
		}, []string{"Do A", "Do B"}},
		{"a clean-up of a group runs all", true, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{s("A", passes), step.Group("g", s("B", passes), s("C", failsWith(errFirst))), s("D", passes)}
		}, []string{"Cleanup D", "Cleanup C", "Cleanup B"}},
		{"When holds", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", always, s("A", passes), s("B", passes)), s("C", passes)}
		}, []string{"Do A", "Do B", "Do C"}},
		{"When holds, and its first step does not pass", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", always, s("A", waits("x")), s("B", passes)), s("C", passes)}
		}, []string{"Do A"}},
		{"When does not hold", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", never, s("A", failsWith(errFirst)), s("B", passes)), s("C", passes)}
		}, []string{"Do C"}},
		{"the inner When does not hold", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", always, s("A", passes), step.When("v", never, s("B", passes)), s("C", passes))}
		}, []string{"Do A", "Do C"}},
		{"the outer When does not hold", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", never, s("A", passes), step.When("v", always, s("B", passes))), s("C", passes)}
		}, []string{"Do C"}},
		{"two inner conditions do not mix", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("w", always, step.When("v", never, s("A", passes)), step.When("u", always, s("B", passes)))}
		}, []string{"Do B"}},
		{"nor do those that are deeper", false, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.When("1", always, step.When("2", always, step.When("3", always,
				step.When("4", always, s("A", passes)), step.When("5", never, s("B", passes)))))}
		}, []string{"Do A"}},
		{"the clean-up is for all, also where When does not hold", true, func(s func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{s("A", passes), step.When("w", never, s("B", passes), s("C", passes))}
		}, []string{"Cleanup C", "Cleanup B", "Cleanup A"}},
		{"nothing at all", false, func(func(string, doFunc) step.Step[*Thing]) []step.Step[*Thing] {
			return []step.Step[*Thing]{step.Group[*Thing]("g"), step.When[*Thing]("w", always)}
		}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newThing()
			if test.delete {
				obj = deletedThing(finalizer)
			}
			w := newWorld(t, obj)
			var log []string
			posts, all := 0, 0
			steps := test.steps(func(name string, do doFunc) step.Step[*Thing] {
				all++
				return poster{
					cleaner{doing(name, logged(&log, "Do "+name, do)), logged(&log, "Cleanup "+name, do)},
					func(context.Context, *step.Request[*Thing]) error {
						posts++
						return nil
					},
				}
			})
			w.engine(steps...)
			_, _ = w.reconcile()
			if diff := cmp.Diff(test.want, log); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
			if posts != all {
				t.Errorf("Post was called %d times for %d steps", posts, all)
			}
		})
	}
}

func TestConditionsOfStepsThatAreNotNeeded(t *testing.T) {
	w := newWorld(t, newThing())
	w.engine(
		step.When("it has a size", func(req *step.Request[*Thing]) bool { return req.Object.Spec.Size > 0 },
			keeper{doing("A", failsWith(errFirst)), []condition.Declaration{{Type: "Found"}, {Type: "Degraded", Polarity: condition.AbnormalTrue}}}),
	)
	ready := func(found, degraded, ready string) {
		t.Helper()
		for kind, want := range map[string]string{"Found": found, "Degraded": degraded, "Ready": ready} {
			if got := w.conditionOf(kind); got != want {
				t.Errorf("%s: got %q, want %q", kind, got, want)
			}
		}
	}
	w.must()
	ready("True NotNeeded", "False NotNeeded", "True Ready")
	w.edit(func(obj *Thing) { obj.Spec.Size = 1 })
	w.fails()
	ready("True NotNeeded", "False NotNeeded", "False TemporaryError: A: the first thing broke")
	w.edit(func(obj *Thing) { obj.Spec.Size = 0 })
	w.must()
	ready("True NotNeeded", "False NotNeeded", "True Ready")
	if got := len(heard[journal.StepSkipped](w)); got != 2 {
		t.Errorf("the journal tells %d times that a step was skipped, want 2", got)
	}
}

func TestWorkflow(t *testing.T) {
	w := newWorld(t, newThing())
	builds := 0
	action := func(name string, result func() (ctrl.Result, error)) ctrlkit.Action {
		return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return result() })
	}
	w.engine(step.WorkflowWithCleanup("Run", func(req *step.Request[*Thing]) ctrlkit.Action {
		builds++
		req.Object.Status.Size = builds
		return ctrlkit.JoinOrdered(
			action("good", ctrlkit.NoRequeue),
			action("bad", func() (ctrl.Result, error) { return ctrl.Result{}, errFirst }),
			action("waiting", func() (ctrl.Result, error) { return ctrlkit.WaitFor("Secret default/db") }),
		)
	}, noAction))
	for i := range 2 {
		err := w.fails()
		var failed *ctrlkit.ActionError
		if !errors.Is(err, errFirst) || !errors.As(err, &failed) {
			t.Errorf("got %v", err)
		}
		if got := w.thing().Status.Size; got != i+1 {
			t.Errorf("the workflow was built %d times, want %d: anew for each reconcile", got, i+1)
		}
	}
	began, ended := heard[journal.ActionBegan](w), heard[journal.ActionEnded](w)
	if len(began) != 6 || len(ended) != 6 {
		t.Fatalf("the journal tells of %d and %d actions, want 6", len(began), len(ended))
	}
	if diff := cmp.Diff(journal.ActionBegan{Step: "Run", Action: "good"}, began[0]); diff != "" {
		t.Errorf("began (-want +got):\n%s", diff)
	}
	if o := ended[1].Outcome; !errors.Is(o.Err, errFirst) || o.Class != "TemporaryError" {
		t.Errorf("the outcome of the bad action: %+v", o)
	}
	if diff := cmp.Diff([]journal.Wait{{For: "Secret default/db"}}, ended[2].Outcome.Waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
	w.remove(newThing())
	w.must()
	if w.thing() != nil {
		t.Error("the object is still there")
	}
}

func TestACompositeIsNoStep(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("its Do did not panic")
		}
	}()
	_, _ = step.Group[*Thing]("g").Do(t.Context(), nil)
}
