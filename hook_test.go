package ctrlkit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// recorder is a hook that notes what it is told under its name.
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
			if diff := cmp.Diff(want, j.sorted()); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
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

type lifeCycle struct{ *journal }

func (l lifeCycle) BeforeActionRun(action string, _ context.Context, logger logr.Logger) {
	l.note("before " + action)
	logger.Info("")
}
func (l lifeCycle) AfterActionRun(action string, _ context.Context, _ logr.Logger) {
	l.note("after " + action)
}

func TestLifeCycleHook(t *testing.T) {
	var j journal
	logger := funcr.New(func(_, args string) { j.note(args) }, funcr.Options{})
	ctx := ctrlkit.ContextWithHook(background(), ctrlkit.LifeCycleHook(lifeCycle{&j}, logger))
	_, _ = j.ok("A").Run(ctx)
	j.want(t, "before A", `"level"=0 "msg"="" "action"="A"`, "A", "after A")
}
