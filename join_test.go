// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Result.Requeue is deprecated: it is never set, and honored when an action returns it.

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"pgregory.net/rapid"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// The laws: joining is commutative but for the order of the causes in the text, associative, and
// NoRequeue is its identity.

type result struct {
	requeue   bool
	after     time.Duration
	priority  int // -1 for none
	causes    []string
	exits     bool
	continues bool
	dropped   bool // by controller-runtime, before IgnoreExit and after
}

func observe(a ctrlkit.Action) result {
	r, err := a.Run(background())
	got := result{requeue: r.Requeue, after: r.RequeueAfter, priority: -1}
	if r.Priority != nil {
		got.priority = *r.Priority
	}
	for _, c := range flatten(err) {
		got.causes = append(got.causes, c.Error())
	}
	slices.Sort(got.causes)
	got.exits = errors.Is(err, ctrlkit.ErrExit)
	got.continues = sequenceContinues(a)
	got.dropped = isTerminal(err)
	if _, root := ctrlkit.IgnoreExit(r, err); isTerminal(root) != got.dropped {
		got.causes = append(got.causes, "IgnoreExit changes whether the request is dropped")
	}
	return got
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range many.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

// sequenceContinues reports whether a lets the next action of a sequence run.
func sequenceContinues(a ctrlkit.Action) bool {
	var j journal
	_, _ = ctrlkit.Sequential(a, j.ok("next")).Run(background())
	return len(j.ran) > 0
}

// outcomes generates actions with every kind of outcome.
func outcomes() *rapid.Generator[ctrlkit.Action] {
	return rapid.Custom(func(t *rapid.T) ctrlkit.Action {
		name := rapid.StringMatching(`[A-Z][a-z]{1,3}`).Draw(t, "name")
		d := time.Duration(rapid.IntRange(-2, 5).Draw(t, "seconds")) * time.Second
		run := rapid.SampledFrom([]func() (ctrl.Result, error){
			ctrlkit.NoRequeue,
			ctrlkit.RequeueImmediately,
			ctrlkit.Exit,
			func() (ctrl.Result, error) { return ctrlkit.RequeueAfter(d) },
			func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errBoom) },
			func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait(name) },
			func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Poll(name, d) },
			func() (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(d) },
			ctrlkit.RequeueWithBackoff,
			func() (ctrl.Result, error) { return ctrl.Result{RequeueAfter: d}, nil },
			func() (ctrl.Result, error) { return ctrl.Result{Priority: new(int(d))}, nil },
			func() (ctrl.Result, error) { return ctrl.Result{RequeueAfter: d}, fmt.Errorf("wrapped: %w", errBoom) },
			func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errTerminal) },
			func() (ctrl.Result, error) {
				return ctrl.Result{RequeueAfter: d}, fmt.Errorf("wrapped: %w", errTerminal)
			},
			func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errors.Join(errTerminal, errBoom)) },
			func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(errors.Join(errTerminal, ctrlkit.ErrExit)) },
			func() (ctrl.Result, error) {
				return ctrlkit.RequeueIfError(fmt.Errorf("%w (%w)", errBoom, ctrlkit.ErrExit))
			},
			func() (ctrl.Result, error) { return ctrlkit.RequeueIfError(fmt.Errorf("%w: %w", errBoom, errTerminal)) },
			func() (ctrl.Result, error) {
				return ctrlkit.RequeueIfError(utilerrors.NewAggregate([]error{errTerminal, errBoom}))
			},
		}).Draw(t, "outcome")
		return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) { return run() })
	})
}

func TestJoinLaws(t *testing.T) {
	for _, join := range []struct {
		name string
		of   func(...ctrlkit.Action) ctrlkit.Action
	}{{"Join", ctrlkit.Join}, {"JoinOrdered", ctrlkit.JoinOrdered}, {"ParallelJoin", ctrlkit.ParallelJoin}} {
		t.Run(join.name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a, b, c := outcomes().Draw(t, "a"), outcomes().Draw(t, "b"), outcomes().Draw(t, "c")
				equal := func(law string, x, y ctrlkit.Action) {
					if diff := cmp.Diff(observe(x), observe(y), cmp.AllowUnexported(result{})); diff != "" {
						t.Fatalf("%s: %s and %s differ:\n%s", law, x.Description(), y.Description(), diff)
					}
				}
				equal("commutative", join.of(a, b), join.of(b, a))
				equal("associative", join.of(join.of(a, b), c), join.of(a, join.of(b, c)))
				equal("flat", join.of(join.of(a, b), c), join.of(a, b, c))
				equal("identity", join.of(a, ctrlkit.Nop()), join.of(a))
			})
		})
	}
}

func TestJoinRules(t *testing.T) {
	low, high := 1, 7
	for _, tt := range []struct {
		name       string
		a, b, want ctrl.Result
	}{
		{"requeues are or-ed", ctrl.Result{Requeue: true}, ctrl.Result{}, ctrl.Result{Requeue: true}},
		{"the shortest time that is not zero", ctrl.Result{RequeueAfter: 3}, ctrl.Result{RequeueAfter: 2}, ctrl.Result{RequeueAfter: 2}},
		{"zero is no time", ctrl.Result{RequeueAfter: 3}, ctrl.Result{}, ctrl.Result{RequeueAfter: 3}},
		{"a time that has passed is now", ctrl.Result{RequeueAfter: 3}, ctrl.Result{RequeueAfter: -5}, ctrl.Result{RequeueAfter: 1}},
		{"the highest priority", ctrl.Result{Priority: &low}, ctrl.Result{Priority: &high}, ctrl.Result{Priority: &high}},
		{"a priority and none", ctrl.Result{Priority: &low}, ctrl.Result{}, ctrl.Result{Priority: &low}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j journal
			got, err := ctrlkit.Join(j.ends("A", tt.a, nil), j.ends("B", tt.b, nil)).Run(background())
			must(t, err)
			same(t, "joined result", tt.want, got)
		})
	}
}

func TestJoinKeepsEveryCause(t *testing.T) {
	other := errors.New("other")
	for _, join := range []func(...ctrlkit.Action) ctrlkit.Action{ctrlkit.Join, ctrlkit.JoinOrdered, ctrlkit.ParallelJoin} {
		var j journal
		_, err := join(j.fails("A"), j.ok("B"), j.ends("C", ctrl.Result{}, fmt.Errorf("creating: %w", other))).Run(background())
		if !errors.Is(err, errBoom) || !errors.Is(err, other) {
			t.Errorf("error %v lacks a cause", err)
		}
		if got, want := text(err), "A: boom; C: creating: other"; got != want {
			t.Errorf("got text %q, want %q", got, want)
		}
		if got, want := j.sorted(), []string{"A", "B", "C"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
	}
}

func TestJoinDoesNotChangeTheSliceOfItsCaller(t *testing.T) {
	var j journal
	actions := make([]ctrlkit.Action, 20)
	for i := range actions {
		actions[i] = j.ok(fmt.Sprint(i))
	}
	before := slices.Clone(actions)
	joined := ctrlkit.Join(actions...)
	ctx := ctrlkit.ContextWithShuffle(background(), 3)
	_, _ = joined.Run(ctx)
	if !slices.Equal(before, actions) {
		t.Error("Join has reordered the slice of its caller")
	}
	if len(j.ran) != 20 || slices.IsSortedFunc(j.ran, func(a, b string) int { return len(a)*100 + strings.Compare(a, b) - len(b)*100 }) {
		t.Errorf("ran %v: the order was to be shuffled", j.ran)
	}
	actions[0] = j.fails("changed later")
	if _, err := joined.Run(background()); err != nil {
		t.Errorf("the slice of the caller was kept: %v", err)
	}
}

func TestShuffleKeepsTheOrderOfCauses(t *testing.T) {
	var j journal
	w := ctrlkit.Join(j.fails("A"), j.fails("B"), j.fails("C"), j.fails("D"))
	for seed := range uint64(20) {
		if _, err := w.Run(ctrlkit.ContextWithShuffle(background(), seed)); text(err) != "A: boom; B: boom; C: boom; D: boom" {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func TestJoinOrderedRunsInOrderUnderShuffle(t *testing.T) {
	var j journal
	_, _ = ctrlkit.JoinOrdered(j.fails("A"), j.waits("B"), j.ok("C")).Run(ctrlkit.ContextWithShuffle(background(), 1))
	j.want(t, "A", "B", "C")
}

func TestSequential(t *testing.T) {
	soon := ctrl.Result{RequeueAfter: time.Second}
	for _, tt := range []struct {
		name   string
		second ctrlkit.Action
		ran    string
		want   ctrl.Result
		err    string
	}{
		{"passes", ctrlkit.Nop(), "A C", ctrl.Result{}, ""},
		{"error", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return soon, errBoom }), "A", soon, "B: boom"},
		{"exit", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrlkit.Exit() }), "A", ctrl.Result{}, "B: exit"},
		{"wait", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.Wait("x") }), "A", ctrl.Result{}, "B: waiting for x"},
		{"requeue", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueAfter(time.Second) }), "A", soon, ""},
		{"passed time", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrl.Result{RequeueAfter: -1}, nil }), "A", ctrl.Result{RequeueAfter: 1}, ""},
		{"legacy requeue", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrl.Result{Requeue: true}, nil }), "A", ctrl.Result{Requeue: true}, ""},
		{"no error", ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrlkit.RequeueIfError(nil) }), "A C", ctrl.Result{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var j journal
			got, err := ctrlkit.Sequential(j.ok("A"), tt.second, j.ok("C")).Run(background())
			same(t, "result", tt.want, got)
			same(t, "error", tt.err, text(err))
			j.want(t, strings.Fields(tt.ran)...)
		})
	}
}

func TestRequeueWithinContinuesAndRequeues(t *testing.T) {
	again := func(d time.Duration) ctrlkit.Action {
		return ctrlkit.NewAction("Again", func(context.Context) (ctrl.Result, error) { return ctrl.Result{}, ctrlkit.RequeueWithin(d) })
	}
	var j journal
	// Nested on purpose: the mark has to survive each level, and a real interruption beside it has
	// to win.
	w := ctrlkit.Sequential(
		ctrlkit.Join(ctrlkit.Sequential(again(5*time.Second), j.ok("A")), again(3*time.Second)),
		j.ok("B"),
		ctrlkit.Join(again(time.Minute), j.ends("C", ctrl.Result{RequeueAfter: time.Hour}, nil)),
		j.ok("never"),
	)
	got, err := ctrlkit.IgnoreExit(w.Run(background()))
	must(t, err)
	same(t, "requeued after", 3*time.Second, got.RequeueAfter)
	j.want(t, "A", "B", "C")
}

func TestParallelJoinRunsBesideOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		_, err := ctrlkit.ParallelJoin(nap("A"), nap("B"), nap("C")).Run(t.Context())
		must(t, err)
		same(t, "time", 500*time.Millisecond, time.Since(begin))
	})
}

func TestPanicArrivesWithItsStack(t *testing.T) {
	explode := ctrlkit.NewAction("Explode", func(context.Context) (ctrl.Result, error) { panic(errBoom) })
	for name, w := range map[string]func(...ctrlkit.Action) ctrlkit.Action{
		"Join": ctrlkit.Join, "ParallelJoin": ctrlkit.ParallelJoin, "Sequential": ctrlkit.Sequential,
		"Graph": func(actions ...ctrlkit.Action) ctrlkit.Action {
			return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
				for _, a := range actions {
					g.Add(a)
				}
			})
		},
		"Timeout": func(actions ...ctrlkit.Action) ctrlkit.Action {
			return ctrlkit.Timeout(time.Minute, ctrlkit.Join(actions...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal
			_, err := w(j.ok("A"), explode).Run(background())
			var p *ctrlkit.PanicError
			if !errors.As(err, &p) || !errors.Is(err, errBoom) {
				t.Fatalf("got error %v, want a panic that wraps its value", err)
			}
			if !strings.Contains(string(p.Stack), "TestPanicArrivesWithItsStack") {
				t.Errorf("the stack does not show where the panic was:\n%s", p.Stack)
			}
			if got, want := text(err), "Explode: panic: boom"; got != want {
				t.Errorf("got text %q, want %q", got, want)
			}
			if full := fmt.Sprintf("%+v", p); !strings.Contains(full, "goroutine") || strings.Contains(fmt.Sprintf("%v", p), "goroutine") {
				t.Error("the plus flag is to show the stack, and its absence is not")
			}
			j.want(t, "A")
		})
	}
}

func TestGoexitOfABranchIsNotSuccess(t *testing.T) {
	var j journal
	leave := ctrlkit.NewAction("Leave", func(context.Context) (ctrl.Result, error) {
		runtime.Goexit()
		return ctrlkit.NoRequeue()
	})
	_, err := ctrlkit.ParallelJoin(leave, j.ok("B")).Run(background())
	if err == nil || !strings.Contains(err.Error(), "Leave: its goroutine was ended") {
		t.Errorf("got %v, want an error that names Leave", err)
	}
}

func TestCanceledStartsNothing(t *testing.T) {
	for name, build := range combinators() {
		t.Run(name, func(t *testing.T) {
			var j journal
			_, err := build(j.ok("A"), j.ok("B")).Run(canceled())
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			j.want(t)
		})
	}
}

func TestCanceledMidwayStartsNothingFurther(t *testing.T) {
	for name, build := range combinators() {
		if name == "ParallelJoin" || name == "Graph" {
			continue // their actions have all begun
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(background())
			var j journal
			stop := ctrlkit.NewAction("Stop", func(context.Context) (ctrl.Result, error) { cancel(); return ctrlkit.NoRequeue() })
			_, err := build(stop, j.ok("B")).Run(ctx)
			if !errors.Is(err, context.Canceled) && len(j.ran) > 0 {
				t.Errorf("got error %v, want context.Canceled", err)
			}
			j.want(t)
		})
	}
}

// combinators are ways to build a workflow of two actions.
func combinators() map[string]func(a, b ctrlkit.Action) ctrlkit.Action {
	return map[string]func(a, b ctrlkit.Action) ctrlkit.Action{
		"Join":         func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.Join(a, b) },
		"JoinOrdered":  func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.JoinOrdered(a, b) },
		"ParallelJoin": func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.ParallelJoin(a, b) },
		"Sequential":   func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.Sequential(a, b) },
		"Graph": func(a, b ctrlkit.Action) ctrlkit.Action {
			return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(a); g.Add(b) })
		},
		"chained Graph": func(a, b ctrlkit.Action) ctrlkit.Action {
			return ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) { g.Add(b, g.Add(a)) })
		},
		"Timeout": func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.Timeout(time.Hour, ctrlkit.Sequential(a, b)) },
		"Once":    func(a, b ctrlkit.Action) ctrlkit.Action { return ctrlkit.Once(ctrlkit.Sequential(a, b)) },
		"IfFunc": func(a, b ctrlkit.Action) ctrlkit.Action {
			yes := func(context.Context) (bool, error) { return true, nil }
			return ctrlkit.Sequential(ctrlkit.IfFunc("yes", yes, a), ctrlkit.IfElseFunc("yes", yes, b, a))
		},
	}
}

func TestNilActionIsTheCallersBug(t *testing.T) {
	for name, build := range combinators() {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "nil action") {
					t.Errorf("got panic %v, want one that names a nil action", v)
				}
			}()
			build(ctrlkit.Nop(), nil) //nolint:discarded // it panics
		})
	}
}
