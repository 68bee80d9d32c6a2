// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// TimeoutGrace is how long a [Timeout] waits after its time for actions that honor their context. A
// Timeout inside another waits half as long as the outer one, so that the outer one receives what
// the inner one returned.
const TimeoutGrace = 100 * time.Millisecond

// Timeout runs action with a context that ends after d, and returns after d and [TimeoutGrace] at
// the latest, also when the action ignores its context. The outcomes of the actions inside that
// have ended by then are joined with the [TimeoutError].
//
//   - An action that ignores its context keeps running. It is named in the error, and what it
//     returns is dropped.
//   - It is not started again before it has ended, neither in this workflow nor (see [WithObject])
//     in that of a later reconcile.
//   - Of two runs of the same action under Timeouts in one workflow, the second waits for the first
//     as long as it has time.
//   - A d that is not positive leaves no time: the action is not started.
func Timeout(d time.Duration, action Action) Action {
	return &timeout{after: d, action: runnerOf("Timeout", action)}
}

// A TimeoutError reports that the time of a [Timeout] was over. It is a context.DeadlineExceeded,
// and never a terminal error.
type TimeoutError struct {
	// After is the time that the action had.
	After time.Duration
	// Action is the description of the action inside the Timeout.
	Action string
	// Running are the descriptions of the actions that were running at the deadline, and may still
	// be, in the order in which they began.
	Running []string
	// Err is what the actions that honored their context returned because of the deadline, and
	// otherwise why the action was given up: if it is still running, that is an [ErrStillRunning].
	// It is nil if there is nothing to add.
	Err error
}

func (e *TimeoutError) Error() string {
	text := fmt.Sprintf("%s: timed out after %s", e.Action, e.After)
	if len(e.Running) > 0 && (len(e.Running) > 1 || e.Running[0] != e.Action) {
		text += " in " + strings.Join(e.Running, ", ")
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns context.DeadlineExceeded and Err.
func (e *TimeoutError) Unwrap() []error {
	if e.Err == nil {
		return []error{context.DeadlineExceeded}
	}
	return []error{context.DeadlineExceeded, e.Err}
}

// ErrStillRunning is the cause when an action is not started because an earlier run of it is still
// running, such as one that has outlived its [Timeout], and that of a [TimeoutError] about an
// action that is still running.
var ErrStillRunning = errors.New("an earlier run is still running")

// givenUp is the error for an action that is not waited for any longer.
type givenUp struct{ why error }

func (g *givenUp) Error() string {
	if g.why == nil {
		return "it is still running"
	}
	return "given up: " + g.why.Error()
}

// Is reports whether target is [ErrStillRunning]: a given up action still runs.
func (g *givenUp) Is(target error) bool { return target == ErrStillRunning }
func (g *givenUp) Unwrap() error        { return g.why }

type timeout struct {
	after  time.Duration
	action runner
}

func (t *timeout) Description() string { return t.Describe().String() }
func (t *timeout) needsRun() bool      { return true }
func (t *timeout) Describe() outline.Node {
	return outline.Node{Kind: outline.KindTimeout, Label: t.after.String(), Children: describeAll([]runner{t.action})}
}

func (t *timeout) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, t)
	return t.runIn(ctx, r)
}

func (t *timeout) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	if ctx.Err() != nil {
		return ctrl.Result{}, notStarted(ctx, t.action)
	}
	ctx, r, s := r.open(ctx, nil)
	result, err := t.limited(ctx, r)
	s.close(result, err)
	return result, err
}

func (t *timeout) limited(ctx context.Context, r *run) (ctrl.Result, error) {
	if t.after <= 0 {
		return ctrl.Result{}, t.timedOut(nil, errors.New("no time was given"))
	}
	limited, cancel := context.WithTimeout(ctx, t.after)
	defer cancel()
	s := newScope(r, limited.Err)
	limited, r = r.with(limited, func(r *run) { r.scope = s })

	ended := make(chan returned, 1)
	go func() {
		var o returned
		defer func() { ended <- o }()
		o.of(limited, r, t.action)
	}()
	select {
	case o := <-ended:
		return t.inTime(ctx, s, o)
	case <-limited.Done():
	}
	grace := time.NewTimer(s.grace)
	defer grace.Stop()
	select {
	case o := <-ended:
		return t.inTime(ctx, s, o)
	case <-grace.C:
	}
	select { // it may have ended in the same moment
	case o := <-ended:
		return t.inTime(ctx, s, o)
	default:
		return t.late(ctx, s)
	}
}

// inTime returns what the action returned. The errors that the deadline caused are wrapped in a
// [TimeoutError].
func (t *timeout) inTime(ctx context.Context, s *scope, o returned) (ctrl.Result, error) {
	if !errors.Is(o.err, context.DeadlineExceeded) || s.over() == nil || ctx.Err() != nil {
		return o.result, o.err
	}
	var all joined
	var due []error
	all.add(o.result, nil)
	for _, err := range outcome.CausesOf(o.err) {
		if errors.Is(err, context.DeadlineExceeded) {
			due = append(due, err)
		} else {
			all.add(ctrl.Result{}, err)
		}
	}
	all.add(ctrl.Result{}, t.timedOut(s.atDeadline(), outcome.JoinErrors(due)))
	return all.outcome()
}

// late gives the action up, and returns what those inside it that have ended returned.
func (t *timeout) late(ctx context.Context, s *scope) (ctrl.Result, error) {
	s.abandon()
	all := s.outcomes()
	if running := s.atDeadline(); ctx.Err() != nil {
		all.add(ctrl.Result{}, &ActionError{Action: strings.Join(running, ", "), Err: &givenUp{context.Cause(ctx)}})
	} else {
		all.add(ctrl.Result{}, t.timedOut(running, &givenUp{}))
	}
	return all.outcome()
}

func (t *timeout) timedOut(running []string, err error) error {
	action := t.action.Description()
	if named, ok := err.(*ActionError); ok && named.Action == action { //nolint:errorlint // only the outermost layer
		err = named.Err // the name is in the text already
	}
	return &TimeoutError{After: t.after, Action: action, Running: running, Err: err}
}

// scope records what is running under one Timeout, what was running at its deadline, and what was
// returned.
type scope struct {
	outer *scope       // the Timeout around this one, nil if there is none
	over  func() error // not nil once the time is over
	grace time.Duration

	mu        sync.Mutex // guards the fields below
	spans     []*span    // all, in the order in which they were opened
	running   []*span    // in the order in which they began; once the time is over none is taken out
	late      []*span    // those that began when the time was over
	abandoned bool
}

func newScope(r *run, over func() error) *scope {
	s := &scope{over: over, grace: TimeoutGrace}
	if r != nil && r.scope != nil {
		s.outer, s.grace = r.scope, r.scope.grace/2
	}
	return s
}

// add records that r has begun. An action that begins after the deadline, such as the tail of a
// Finally, does not count as running at the deadline.
func (s *scope) add(r *span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() == nil {
		s.running = append(s.running, r)
	} else if s.late = append(s.late, r); s.abandoned {
		outliving.add(r)
	}
}

// remove drops r, which has ended. Actions that were running at the deadline stay: the error names
// it, however soon it ended after that.
func (s *scope) remove(r *span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() == nil {
		s.running = slices.DeleteFunc(s.running, func(other *span) bool { return other == r })
	}
}

// abandon records that the scope is not waited for any more: what is running in it, or begins in it
// from now on, outlives it.
func (s *scope) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	for _, r := range slices.Concat(s.running, s.late) {
		outliving.add(r)
	}
}

// atDeadline returns the descriptions of the actions that were running when the time was over.
func (s *scope) atDeadline() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, r := range s.running {
		names = append(names, r.action.description)
	}
	return names
}

// outcomes joins what has been returned in the scope.
func (s *scope) outcomes() *joined {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := map[*span]*returned{} // loaded once: actions end meanwhile
	for _, x := range s.spans {
		if o := x.outcome.Load(); o != nil {
			ended[x] = o
		}
	}
	var kept []*returned
	for _, x := range s.spans {
		if o := ended[x]; o != nil && !x.isWithin(func(outer *span) bool { return ended[outer] != nil }) {
			kept = append(kept, o)
		}
	}
	// In the order of their texts: the order in which parallel actions begin differs from run to
	// run.
	slices.SortStableFunc(kept, func(a, b *returned) int { return strings.Compare(a.text(), b.text()) })
	all := &joined{}
	for _, o := range kept {
		all.add(o.result, o.err)
	}
	return all
}

// span is one run, under a Timeout, of a leaf or of something else that has an outcome of its own.
// Its outcome stands for those of the spans within. A nil span is outside of any Timeout.
type span struct {
	action  *leaf // nil for what is not one
	scope   *scope
	parent  *span
	outcome atomic.Pointer[returned]
	ended   chan struct{} // of a leaf: closed at the end
}

// open returns a span of l and the context and run for what is within it, if r is under a Timeout.
func (r *run) open(ctx context.Context, l *leaf) (context.Context, *run, *span) {
	if r == nil || r.scope == nil {
		return ctx, r, nil
	}
	s := &span{action: l, scope: r.scope, parent: r.within, ended: make(chan struct{})}
	for o := s.scope; o != nil; o = o.outer {
		o.mu.Lock()
		o.spans = append(o.spans, s)
		o.mu.Unlock()
	}
	ctx, r = r.with(ctx, func(r *run) { r.within = s })
	return ctx, r, s
}

// close keeps what was returned.
func (s *span) close(result ctrl.Result, err error) {
	if s != nil {
		s.outcome.Store(&returned{result: result, err: err})
	}
}

// admit returns when l may run: no earlier run of it has outlived its timeout and is running, and
// under a Timeout no other one of the same workflow.
func (s *span) admit(ctx context.Context, r *run, l *leaf) error {
	if outliving.count.Load() != 0 {
		if err := awaitAbandoned(ctx, l); err != nil {
			return err
		}
	}
	for s != nil {
		holder := r.shared.claim(l.identity, s)
		if holder == s || s.isWithin(func(outer *span) bool { return outer == holder }) {
			return nil
		}
		select {
		case <-holder.ended:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrStillRunning, context.Cause(ctx))
		}
	}
	return nil
}

// claim returns the span that runs the action of this identity: s if there is no other.
func (s *shared) claim(identity any, by *span) *span {
	s.mu.Lock()
	defer s.mu.Unlock()
	if holder, taken := s.running[identity]; taken {
		return holder
	}
	if s.running == nil {
		s.running = map[any]*span{}
	}
	s.running[identity] = by
	return by
}

// release ends what claim began.
func (s *shared) release(identity any, by *span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[identity] == by {
		delete(s.running, identity)
	}
}

func (s *span) isWithin(is func(outer *span) bool) bool {
	for outer := s.parent; outer != nil; outer = outer.parent {
		if is(outer) {
			return true
		}
	}
	return false
}

// begin records that the leaf is running.
func (s *span) begin() {
	if s == nil {
		return
	}
	for o := s.scope; o != nil; o = o.outer {
		o.add(s)
	}
}

// end records that the leaf is not running any more.
func (s *span) end(r *run) {
	if s == nil {
		return
	}
	r.shared.release(s.action.identity, s)
	close(s.ended)
	for o := s.scope; o != nil; o = o.outer {
		o.remove(s)
	}
	outliving.remove(s)
}

// outliving are the actions of this process that still run after their Timeout.
var outliving abandoned

type abandoned struct {
	count atomic.Int64 // of entries, so that a run takes no lock while there are none
	mu    sync.Mutex   // guards runs
	runs  map[any]*span
}

func (a *abandoned) add(r *span) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-r.ended:
		return
	default:
	}
	if a.runs == nil {
		a.runs = map[any]*span{}
	}
	if _, known := a.runs[r.action.identity]; !known {
		a.runs[r.action.identity] = r
		a.count.Add(1)
	}
}

func (a *abandoned) remove(r *span) {
	if a.count.Load() == 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runs[r.action.identity] == r {
		delete(a.runs, r.action.identity)
		a.count.Add(-1)
	}
}

func (a *abandoned) get(identity any) *span {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[identity]
}

// awaitAbandoned returns when no earlier run of l that outlived its timeout is running. It waits
// for that as long as ctx has time; where ctx has no deadline it does not wait, which would hold a
// worker for ever.
func awaitAbandoned(ctx context.Context, l *leaf) error {
	earlier := outliving.get(l.identity)
	if earlier == nil {
		return nil
	}
	if _, bounded := ctx.Deadline(); !bounded {
		return ErrStillRunning
	}
	select {
	case <-earlier.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrStillRunning, context.Cause(ctx))
	}
}
