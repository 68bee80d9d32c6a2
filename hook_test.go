// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ctrlkit/ctrlkit"
)

// recorder is a hook that notes its calls under its name.
type recorder struct {
	name string
	*journal
}

func (r recorder) BeforeAction(ctx context.Context, action string) context.Context {
	r.note(fmt.Sprintf("%s before %s", r.name, action))
	return context.WithValue(ctx, testKey{}, r.name)
}

func (r recorder) AfterAction(ctx context.Context, action string, _ ctrl.Result, err error) {
	r.note(fmt.Sprintf("%s after %s: %v", r.name, action, err))
}

func (r recorder) ActionBlocked(_ context.Context, action string, by []string) {
	r.note(fmt.Sprintf("%s blocked %s by %v", r.name, action, by))
}

func TestHooksAreChained(t *testing.T) {
	var j journal
	a := ctrlkit.NewAction("A", func(ctx context.Context) (ctrl.Result, error) {
		j.note(fmt.Sprint("A under ", ctx.Value(testKey{})))
		return ctrlkit.RequeueIfError(errBoom)
	}, ctrlkit.WithHook(recorder{"third", &j}), ctrlkit.WithHook(nil))
	ctx := ctrlkit.ContextWithHook(background(), recorder{"first", &j})
	ctx = ctrlkit.ContextWithHook(ctx, recorder{"second", &j})
	_, _ = ctrlkit.Join(a).Run(ctx)
	j.want(t,
		"first before A", "second before A", "third before A",
		"A under third",
		"third after A: A: boom", "second after A: A: boom", "first after A: A: boom")
}

func TestHooksSeeEveryActionOnce(t *testing.T) {
	for name, build := range combinators() {
		t.Run(name, func(t *testing.T) {
			var j journal
			ctx := ctrlkit.ContextWithHook(background(), recorder{"hook", &j})
			nop := func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }
			_, _ = build(ctrlkit.NewAction("A", nop), ctrlkit.NewAction("B", nop)).Run(ctx)
			want := []string{"hook after A: <nil>", "hook after B: <nil>", "hook before A", "hook before B"}
			same(t, "calls", want, j.sorted())
		})
	}
}

func TestHooksOfAPanicAndOfBlockedActions(t *testing.T) {
	var j journal
	ctx := ctrlkit.ContextWithHook(background(), ctrlkit.ChainHooks(recorder{"hook", &j}, nil, ctrlkit.LogHook(logr.Discard())))
	_, _ = ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
		a := g.Add(ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) { panic("no") }))
		g.Add(ctrlkit.NewAction("B", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }), a)
	}).Run(ctx)
	j.want(t, "hook before A", "hook after A: A: panic: no", "hook blocked B by [A]")
}

// panicking is a hook that panics before, after or when it is called for a blocked action.
type panicking struct{ when string }

func (p panicking) panics(when string) {
	if p.when == when {
		panic(when)
	}
}

func (p panicking) BeforeAction(ctx context.Context, _ string) context.Context {
	p.panics("before")
	return ctx
}
func (p panicking) AfterAction(context.Context, string, ctrl.Result, error) { p.panics("after") }
func (p panicking) ActionBlocked(context.Context, string, []string)         { p.panics("blocked") }

// A hook that panics fails the action. The actions beside it and the hooks around it do not suffer.
func TestHookThatPanics(t *testing.T) {
	for _, tt := range []struct {
		when string
		want []string
		err  string
	}{
		{"before", []string{"outer before A", "outer after A: A: hook: panic: before", "outer before B", "outer after B: B: hook: panic: before"},
			"A: hook: panic: before; B: hook: panic: before"},
		{"after", []string{
			"outer before A", "inner before A", "A", "inner after A: A: boom", "outer after A: A: boom; A: hook: panic: after",
			"outer before B", "inner before B", "B", "inner after B: <nil>", "outer after B: B: hook: panic: after",
		},
			"A: boom; A: hook: panic: after; B: hook: panic: after"},
	} {
		t.Run(tt.when, func(t *testing.T) {
			var j journal
			ctx := ctrlkit.ContextWithHook(background(), ctrlkit.ChainHooks(recorder{"outer", &j}, panicking{tt.when}, recorder{"inner", &j}))
			_, err := ctrlkit.JoinOrdered(j.fails("A"), j.ok("B")).Run(ctx)
			j.want(t, tt.want...)
			var p *ctrlkit.PanicError
			if text(err) != tt.err || !errors.As(err, &p) {
				t.Errorf("got %q, want %q", text(err), tt.err)
			}
		})
	}
	t.Run("of its own", func(t *testing.T) {
		var j journal
		a := ctrlkit.NewAction("A", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }, ctrlkit.WithHook(panicking{"after"}))
		_, err := ctrlkit.JoinOrdered(a, j.ok("B")).Run(ctrlkit.ContextWithHook(background(), recorder{"outer", &j}))
		j.want(t, "outer before A", "outer after A: A: hook: panic: after", "outer before B", "B", "outer after B: <nil>")
		same(t, "error", "A: hook: panic: after", text(err))
	})
	t.Run("blocked", func(t *testing.T) {
		var j journal
		_, err := ctrlkit.JoinOrdered(ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
			g.Add(j.ok("B"), g.Add(j.fails("A")))
		}), j.ok("C")).Run(ctrlkit.ContextWithHook(background(), panicking{"blocked"}))
		j.want(t, "A", "C")
		if want := "A: boom; B is blocked by A; B: hook: panic: blocked"; text(err) != want {
			t.Errorf("got %q, want %q", text(err), want)
		}
	})
}

// Hooks are also called for an action that is refused because an earlier run of it is still
// running.
func TestHooksAreCalledForARefusedAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		a := deaf("A", release, new(atomic.Int32))
		if _, err := ctrlkit.Timeout(time.Second, a).Run(t.Context()); err == nil {
			t.Fatal("want a timeout")
		}
		var j journal
		if _, err := a.Run(ctrlkit.ContextWithHook(t.Context(), recorder{"hook", &j})); !errors.Is(err, ctrlkit.ErrStillRunning) {
			t.Error(err)
		}
		j.want(t, "hook before A", "hook after A: A: an earlier run is still running")
	})
}

func TestHooksReachInsideForeignActions(t *testing.T) {
	var j journal
	ctx := ctrlkit.ContextWithHook(background(), recorder{"hook", &j})
	_, _ = ctrlkit.Sequential(foreignAction{ctrlkit.Join(j.ok("A"))}).Run(ctx)
	j.want(t, "hook before foreign", "hook before A", "A", "hook after A: <nil>", "hook after foreign: <nil>")
}

func TestLogHook(t *testing.T) {
	var j journal
	logger := funcr.New(func(_, args string) { j.note(args) }, funcr.Options{Verbosity: 1})
	ctx := ctrlkit.ContextWithHook(background(), ctrlkit.LogHook(logger))
	_, _ = ctrlkit.Join(j.ok("Fine"), j.waits("Waits"), j.fails("Fails")).Run(ctx)
	j.want(t,
		`"level"=1 "msg"="Action begins" "action"="Fine"`, "Fine",
		`"level"=1 "msg"="Action ends" "action"="Fine" "exit"=false "requeueAfter"="0s"`,
		`"level"=1 "msg"="Action begins" "action"="Waits"`, "Waits",
		`"level"=1 "msg"="Action waits" "action"="Waits" "for"="the world" "every"="0s"`,
		`"level"=1 "msg"="Action ends" "action"="Waits" "exit"=true "requeueAfter"="0s"`,
		`"level"=1 "msg"="Action begins" "action"="Fails"`, "Fails",
		`"msg"="Action failed" "error"="Fails: boom" "action"="Fails"`)
}

// asking is a hook that asks for the state and the logger of an action.
type asking struct{ *journal }

func (a asking) BeforeAction(ctx context.Context, action string) context.Context {
	state, ok := ctrlkit.StateFromContext[fmt.Stringer](ctx)
	_, number := ctrlkit.StateFromContext[int](ctx)
	a.note(fmt.Sprint("before ", action, ": ", state, ok, number))
	ctrlkit.LoggerFromContext(ctx).Info("before")
	return ctx
}

func (a asking) AfterAction(ctx context.Context, action string, _ ctrl.Result, _ error) {
	state, _ := ctrlkit.StateFromContext[fmt.Stringer](ctx)
	a.note(fmt.Sprint("after ", action, ": ", state))
}

type stateOf string

func (s stateOf) String() string { return string(s) }

func TestHooksReachStateAndLogger(t *testing.T) {
	var j journal
	logger := funcr.New(func(_, args string) { j.note(args) }, funcr.Options{})
	other := funcr.New(func(_, args string) { j.note("other " + args) }, funcr.Options{})
	nop := func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() }
	ctx := log.IntoContext(background(), other)
	known := ctrlkit.NewAction("Known", nop, ctrlkit.WithState(stateOf("jobs")), ctrlkit.WithLogger(logger), ctrlkit.WithHook(asking{&j}))
	unknown := ctrlkit.NewAction("Unknown", nop, ctrlkit.WithHook(asking{&j}))
	_, _ = ctrlkit.JoinOrdered(known, unknown).Run(ctx)
	j.want(t,
		"before Known: jobstrue false", `"level"=0 "msg"="before" "action"="Known"`, "after Known: jobs",
		"before Unknown: <nil> false false", `other "level"=0 "msg"="before"`, "after Unknown: <nil>")
	j.ran = nil
	silent := ctrlkit.NewAction("Known", nop, ctrlkit.WithState(stateOf("jobs")), ctrlkit.WithLogger(logger))
	_, _ = silent.Run(ctrlkit.ContextWithHook(ctx, asking{&j}))
	j.want(t, "before Known: jobstrue false", `"level"=0 "msg"="before" "action"="Known"`, "after Known: jobs")
}
