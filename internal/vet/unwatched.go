// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
)

// unwatchedAnalyzer reports reads of a kind in a reconcile, if no controller of the package watches
// the kind and the reconcile never asks for another one after a time. For what Connect of an external
// resource reads, no time is good enough. It is silent where the package does not show everything.
var unwatchedAnalyzer = newAnalyzer("unwatched", runUnwatched,
	"report kinds that a reconcile reads and that its controllers do not watch\n\n"+
		"A change of such an object triggers no reconcile, and without a requeue time nothing else does: what waits for it waits for ever.")

func runUnwatched(pass *analysis.Pass) (any, error) {
	p := programOf(pass)
	s := newSetup(p)
	if s.opaque || len(s.controllers) == 0 {
		return nil, nil
	}
	w := &wakeUps{reporter: newReporter(pass), program: p, setup: s, reported: map[ast.Node]bool{}}
	for _, group := range w.groups() {
		w.check(group)
	}
	return nil, nil
}

// wakeUps looks for reads that nothing wakes.
type wakeUps struct {
	*reporter

	program *program
	setup   *setup
	// reported are the reads that were reported for another controller.
	reported map[ast.Node]bool
}

// A group is the functions of one controller.
type group struct {
	controller string
	functions  []inspector.Cursor
	connect    []inspector.Cursor // those of functions that connect to an external system
}

// groups returns the functions of each controller that the package sets up, in the order of the
// code.
func (w *wakeUps) groups() []group {
	starts, connect := map[string][]inspector.Cursor{}, map[string][]inspector.Cursor{}
	var order []string
	for _, root := range w.program.roots() {
		if _, ok := w.setup.controllers[root.controller]; !ok {
			continue
		}
		if starts[root.controller] == nil {
			order = append(order, root.controller)
		}
		starts[root.controller] = append(starts[root.controller], root.function)
		if root.connects {
			connect[root.controller] = append(connect[root.controller], root.function)
		}
	}
	var actions []inspector.Cursor
	for f, body := range w.program.functions {
		if receiver := f.Signature().Recv(); f.Name() == "Run" && receiver != nil && isAction(receiver.Type()) {
			actions = append(actions, body)
		}
	}
	groups := make([]group, len(order))
	for i, name := range order {
		groups[i] = group{name, w.program.reach(append(starts[name], actions...)...), w.program.reach(connect[name]...)}
	}
	return groups
}

// check reports what one controller reads without a wake-up, each kind once.
func (w *wakeUps) check(g group) {
	object, isEngine := strings.CutPrefix(g.controller, engineOf(""))
	timed := isEngine && (w.setup.polled[object] || w.setup.polled[""]) || slices.ContainsFunc(g.functions, w.program.requeues)
	functions := g.functions
	if timed {
		functions = g.connect
	}
	var reads []read
	for _, f := range functions {
		reads = append(reads, w.reads(f)...)
	}
	slices.SortFunc(reads, func(a, b read) int { return int(a.node.Pos() - b.node.Pos()) })
	reported := map[string]bool{}
	for _, r := range reads {
		if reported[r.kind.key()] || !w.allows(r.node) {
			continue
		}
		reported[r.kind.key()] = true
		if w.reported[r.node] {
			continue
		}
		w.reported[r.node] = true
		w.report(r.node, w.message(r, w.setup.controllers[g.controller], isEngine, timed))
	}
}

func (w *wakeUps) message(r read, setup token.Pos, isEngine, timed bool) string {
	how := fmt.Sprintf("Watches(&%s{}, ...)", r.kind)
	switch {
	case timed:
		return fmt.Sprintf("%s is read here to connect to an external system, and no controller of this package watches it: "+
			"a change of it is noticed when the resource is polled, or after the backoff of a failure. Add &%s{} to Reads of external.Options", r.kind, r.kind)
	case isEngine:
		how = fmt.Sprintf("step.WatchNamed(&%s{}, ...) in Watches of a step, or Related of a handler", r.kind)
	}
	return fmt.Sprintf("%s is read here and no controller of this package watches it: a change of it triggers no reconcile. "+
		"Watch it where the controller is set up (%s) with %s, or return a time for the next reconcile", r.kind, placeText(w.pass, setup), how)
}

// A read is one of a kind that is not watched.
type read struct {
	node ast.Node
	kind kind
}

// reads returns the reads of unwatched kinds in a function.
func (w *wakeUps) reads(f inspector.Cursor) []read {
	var found []read
	written := w.written(f)
	for _, call := range nodes[*ast.CallExpr](f) {
		k, live, ok := w.kindRead(call)
		switch {
		case live:
			return nil // what is live may be read to confirm what the cache has
		case !ok || w.setup.watched[k.key()] || written[k.key()]:
		default:
			found = append(found, read{call, k})
		}
	}
	return found
}

// kindRead returns the kind that a call reads through the client of the manager or of the request.
// Live reports whether it reads through something else, such as from the API server.
func (w *wakeUps) kindRead(call *ast.CallExpr) (k kind, live, ok bool) {
	p := w.program
	f := p.callee(call)
	if isObject(f, externalPath, "Get") && f.Signature().Recv() != nil && refersTo(f.Signature().Recv().Type(), externalPath, "CredentialScopes") {
		k, ok = kindOf(f.Signature().Results().At(0).Type())
		return k, false, ok
	}
	if isObject(f, stepPath, "GetOrWait") {
		if t := p.typeArguments(call); len(t) > 0 {
			k, ok = kindOf(t[0])
		}
		return k, false, ok
	}
	u, ok := p.use(call)
	if !ok || (u.method != "Get" && u.method != "List") {
		return kind{}, false, false
	}
	if u.live {
		return kind{}, true, false
	}
	object := u.objectOf()
	if object == nil || (p.originOf(u) == originUnknown && !w.ofReconciler(u)) {
		return kind{}, false, false
	}
	k, ok = kindOf(p.info.TypeOf(object))
	return k, false, ok
}

// ofReconciler reports whether the client is the only one of a reconciler that this package gives to
// a controller. The manager's client is put there by convention, often in another package.
func (w *wakeUps) ofReconciler(u use) bool {
	selector, ok := ast.Unparen(u.client).(*ast.SelectorExpr)
	if !ok || u.field != nil {
		return false
	}
	field, owner := w.program.variable(selector), named(w.program.info.TypeOf(selector.X))
	if field == nil || owner == nil || len(w.program.values[field]) > 0 {
		return false
	}
	_, set := w.setup.controllers[reconcilerOf(owner.Obj().Name())]
	return set && owner.Obj().Pkg() == w.program.pkg && w.program.soleClient(field, owner)
}

// written returns the kinds of which a function changes or deletes objects, and that the package
// does not create: they are read to be written.
func (w *wakeUps) written(f inspector.Cursor) map[string]bool {
	kinds := map[string]bool{}
	for _, call := range nodes[*ast.CallExpr](f) {
		u, ok := w.program.use(call)
		if !ok || len(call.Args) < 2 {
			continue
		}
		deletes := strings.HasPrefix(u.method, "Delete")
		changes := strings.HasSuffix(u.method, "Update") || strings.HasSuffix(u.method, "Patch")
		if k, ok := kindOf(w.program.info.TypeOf(call.Args[1])); ok && (deletes || changes && !w.setup.created[k.key()]) {
			kinds[k.key()] = true
		}
	}
	return kinds
}
