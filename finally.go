package ctrlkit

import (
	"context"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// FinallyGrace is how long the tail of [Finally] may take once the context of the run is done.
const FinallyGrace = 10 * time.Second

// Finally runs action and then tail, whatever action returned: also after an error, a panic, an exit or a wait, and joins the two outcomes.
// It is the place for what always has to be done, such as updating the status:
//
//	ctrlkit.Finally(workflow, mgr.UpdateStatus())
//
// Note that `defer mgr.UpdateStatus()` builds an action and does not run it; `ctrlkit vet` reports that.
//
// The tail is owed: when the context is done by then (a shutdown, a [Timeout] around it), the tail still runs, with a context that has its
// values and [FinallyGrace] of time.
func Finally(action, tail Action) Action {
	return &finally{action: runnerOf("Finally", action), tail: runnerOf("Finally", tail)}
}

type finally struct{ action, tail runner }

func (f *finally) Description() string { return f.Describe().String() }
func (f *finally) needsRun() bool      { return f.action.needsRun() || f.tail.needsRun() }
func (f *finally) Describe() Node {
	return Node{Kind: KindFinally, Children: describeAll([]runner{f.action, f.tail})}
}

func (f *finally) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, f)
	return f.runIn(ctx, r)
}

func (f *finally) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	var body outcome
	body.of(ctx, r, f.action)
	var all joined
	all.add(body.result, body.err)
	all.add(f.runTail(ctx, r))
	return all.outcome()
}

func (f *finally) runTail(ctx context.Context, r *run) (ctrl.Result, error) {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), FinallyGrace)
		defer cancel()
	}
	return f.tail.runIn(ctx, r)
}
