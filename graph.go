// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// Graph returns an action that runs actions in the order of their dependencies, as completely as
// possible: an action runs as soon as all that it comes after have passed, beside everything that
// is independent of it.
//
//	ctrlkit.Graph(func(g *ctrlkit.GraphBuilder) {
//		config := g.Add(mgr.SyncConfig())
//		disk := g.Add(mgr.SyncDisk())
//		pods := g.Add(mgr.SyncPods(), config, disk)
//		g.Add(mgr.SyncMonitor(), pods)
//	})
//
// An action has passed if it does not interrupt: no error, no wait, no exit, no requeue. An action
// after one that has not passed is not run and is reported as a [BlockedError] that names it. A
// handle exists only once its action was added, so a cycle cannot be written.
//
// The graph is what build adds; build is called once, before Graph returns. The outcomes are joined
// in the order of the Adds.
func Graph(build func(*GraphBuilder)) Action {
	b := &GraphBuilder{graph: &graph{}}
	build(b)
	g := b.graph
	b.graph = nil
	for i, n := range g.nodes {
		g.shares = g.shares || n.action.needsRun()
		for _, dep := range n.after {
			g.nodes[dep].dependents = append(g.nodes[dep].dependents, i)
		}
	}
	return g
}

// A GraphBuilder adds the actions of a [Graph].
type GraphBuilder struct {
	graph *graph // nil once it is built
}

// A GraphNode stands for an action that was added to a graph.
type GraphNode struct {
	graph *graph
	index int
}

// Add adds action, to be run when all of after have passed. It panics if action is nil, if one of
// after was not added to the same graph, and after the graph was built.
func (b *GraphBuilder) Add(action Action, after ...GraphNode) GraphNode {
	if b.graph == nil {
		panic("ctrlkit: Add on a Graph that is built: add everything inside the function")
	}
	n := &graphNode{action: runnerOf("Graph", action)}
	for _, dep := range after {
		if dep.graph != b.graph {
			panic("ctrlkit: " + n.action.Description() + " comes after an action that was not added to this Graph")
		}
		n.after = append(n.after, dep.index)
	}
	slices.Sort(n.after)
	n.after = slices.Compact(n.after)
	b.graph.nodes = append(b.graph.nodes, n)
	return GraphNode{graph: b.graph, index: len(b.graph.nodes) - 1}
}

// Limit makes at most limit of the actions run at the same time. An action that could begin then
// waits until one has ended; they begin in the order in which they could. It panics if limit is
// less than 1, and after the graph was built.
func (b *GraphBuilder) Limit(limit int) {
	if b.graph == nil {
		panic("ctrlkit: Limit on a Graph that is built: limit it inside the function")
	}
	if limit < 1 {
		panic(fmt.Sprintf("ctrlkit: Limit(%d): at least one action has to run", limit))
	}
	b.graph.limit = limit
}

type graph struct {
	nodes  []*graphNode
	shares bool
	limit  int // of actions that run at the same time, 0 for none
}

type graphNode struct {
	action     runner
	after      []int // rising
	dependents []int // rising
}

func (g *graph) Description() string { return g.Describe().String() }
func (g *graph) needsRun() bool      { return g.shares }

func (g *graph) Describe() outline.Node {
	node := outline.Node{Kind: outline.KindGraph, Label: limitText(g.limit), After: make([][]int, len(g.nodes))}
	for i, n := range g.nodes {
		node.Children = append(node.Children, n.action.(Describer).Describe()) //nolint:forcetypeassert // every runner is one
		node.After[i] = slices.Clone(n.after)
	}
	return node
}

func (g *graph) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, g)
	return g.runIn(ctx, r)
}

func (g *graph) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	t := &traversal{graph: g, ctx: ctx, run: r, states: make([]nodeState, len(g.nodes))}
	t.mu.Lock()
	for i, n := range g.nodes {
		t.states[i].pending = len(n.after)
	}
	for i, n := range g.nodes {
		if len(n.after) == 0 {
			t.start(i)
		}
	}
	t.mu.Unlock()
	t.wg.Wait()
	return t.outcome()
}

// traversal is one run of a graph. It keeps the context because it lives and ends with that run.
type traversal struct {
	graph *graph
	ctx   context.Context
	run   *run
	wg    sync.WaitGroup

	mu      sync.Mutex // guards states, running and ready while actions are running
	states  []nodeState
	running int
	ready   []int // the actions that the limit keeps from beginning

	named *BlockedError // the one that was made last
	by    []int         // its blockers
}

// nodeState is how far one action of a traversal is.
type nodeState struct {
	returned
	pending    int   // how many of those that it comes after have not ended
	blockers   []int // the actions that keep it from running: they failed or wait
	notStarted bool  // the context was done
}

// start runs the i-th action on a goroutine of its own, now or after others; t.mu is held.
func (t *traversal) start(i int) {
	if t.ctx.Err() != nil {
		t.states[i].notStarted = true
		t.pass(i, []int{i})
		return
	}
	if t.graph.limit > 0 && t.running == t.graph.limit {
		t.ready = append(t.ready, i)
		return
	}
	t.running++
	t.wg.Go(func() {
		var o returned
		defer t.ended(i, &o) // also when the action ends its goroutine
		o.of(t.ctx, t.run, t.graph.nodes[i].action)
	})
}

// ended keeps what the i-th action returned, and starts what can begin now: first what the limit
// kept from beginning, then what came after the action.
func (t *traversal) ended(i int, o *returned) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.states[i].returned = *o
	t.running--
	for len(t.ready) > 0 && t.running < t.graph.limit {
		next := t.ready[0]
		t.ready = t.ready[1:]
		t.start(next)
	}
	if interrupts(o.result, o.err) {
		t.pass(i, []int{i})
	} else {
		t.pass(i, nil)
	}
}

// pass counts the i-th action as ended for its dependents, and adds blockers to what blocks them;
// t.mu is held.
func (t *traversal) pass(i int, blockers []int) {
	for _, d := range t.graph.nodes[i].dependents {
		s := &t.states[d]
		s.blockers = append(s.blockers, blockers...)
		if s.pending--; s.pending > 0 {
			continue
		}
		if len(s.blockers) == 0 {
			t.start(d)
			continue
		}
		slices.Sort(s.blockers)
		s.blockers = slices.Compact(s.blockers)
		t.pass(d, s.blockers)
	}
}

func (t *traversal) outcome() (ctrl.Result, error) {
	var all joined
	var canceled []runner
	for i := range t.states {
		s := &t.states[i]
		switch {
		case s.notStarted:
			canceled = append(canceled, t.graph.nodes[i].action)
		case len(s.blockers) > 0:
			b, err := t.blocked(i)
			all.add(ctrl.Result{}, b)
			all.add(ctrl.Result{}, err)
		default:
			all.add(s.result, s.err)
		}
	}
	if len(canceled) > 0 {
		all.add(ctrl.Result{}, notStarted(t.ctx, canceled...))
	}
	return all.outcome()
}

// blocked returns the error of the i-th action, which is blocked, and calls the hook. The second
// error is that of the hook.
func (t *traversal) blocked(i int) (b *BlockedError, err error) {
	b = &BlockedError{Action: t.graph.nodes[i].action.Description()}
	if blockers := t.states[i].blockers; t.named != nil && slices.Equal(t.by, blockers) {
		b.By = t.named.By // many actions come after the same ones
	} else {
		b.By = make([]string, len(blockers))
		for k, j := range blockers {
			b.By[k] = t.graph.nodes[j].action.Description()
		}
		t.named, t.by = b, blockers
	}
	if h, ok := t.run.observer().(BlockHook); ok {
		err = caught(t.ctx, b.Action, func() { h.ActionBlocked(t.ctx, b.Action, b.By) })
	}
	return b, err
}
