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
)

// Timeout runs action with a context that ends after d, and returns then at the latest: also when the action ignores its context. Such
// an action runs on by itself; it is named in the [TimeoutError], what it returns is lost, and it is not started again before it has
// ended, neither in this workflow nor (see [ForObject]) in that of a later reconcile. A d that is not positive leaves no time: the action is not started.
func Timeout(d time.Duration, action Action) Action {
	return &timeout{after: d, action: runnerOf("Timeout", action)}
}

// A TimeoutError says that the time of a [Timeout] was over. It is a context.DeadlineExceeded.
type TimeoutError struct {
	// After is the time that the action was given.
	After time.Duration
	// Action is the description of the action inside the Timeout.
	Action string
	// Running are the descriptions of the actions that were running at the deadline, and may still be, in the order in which they began.
	Running []string
	// Err is the error that the action returned if it heeded its context, and otherwise why it was given up.
	Err error
}

func (e *TimeoutError) Error() string {
	if len(e.Running) > 0 && (len(e.Running) > 1 || e.Running[0] != e.Action) {
		return fmt.Sprintf("%s: timed out after %s in %s", e.Action, e.After, strings.Join(e.Running, ", "))
	}
	return fmt.Sprintf("%s: timed out after %s", e.Action, e.After)
}

// Unwrap returns the error of the action and context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() []error { return []error{context.DeadlineExceeded, e.Err} }

// ErrStillRunning is the cause when an action is not started because an earlier run of it outlived its [Timeout] and has not ended.
var ErrStillRunning = errors.New("an earlier run has outlived its timeout and is still running")

type timeout struct {
	after  time.Duration
	action runner
}

func (t *timeout) Description() string { return t.Describe().String() }
func (t *timeout) needsRun() bool      { return t.action.needsRun() }
func (t *timeout) Describe() Node {
	return Node{Kind: KindTimeout, Label: t.after.String(), Children: describeAll([]runner{t.action})}
}

func (t *timeout) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, t)
	return t.runIn(ctx, r)
}

func (t *timeout) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	if ctx.Err() != nil {
		return ctrl.Result{}, notStarted(ctx, t.action)
	}
	if t.after <= 0 {
		return ctrl.Result{}, t.timedOut(nil, errors.New("no time was given"))
	}
	limited, cancel := context.WithTimeout(ctx, t.after)
	defer cancel()
	s := newScope(r, limited.Err)
	limited, r = r.with(limited, func(r *run) { r.scope = s })

	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() { ended <- o }()
		o.of(limited, r, t.action)
	}()
	select {
	case o := <-ended:
		return t.inTime(ctx, s, o)
	case <-limited.Done():
	}
	select { // an action that heeds its context may have ended in the same moment
	case o := <-ended:
		return t.inTime(ctx, s, o)
	default:
	}
	s.abandon()
	running := s.atDeadline()
	if ctx.Err() != nil {
		return ctrl.Result{}, &ActionError{Action: strings.Join(running, ", "), Err: fmt.Errorf("given up: %w", context.Cause(ctx))}
	}
	return ctrl.Result{}, t.timedOut(running, ErrStillRunning)
}

// inTime returns what the action returned. An error that is due to the deadline says so.
func (t *timeout) inTime(ctx context.Context, s *scope, o outcome) (ctrl.Result, error) {
	if errors.Is(o.err, context.DeadlineExceeded) && s.over() != nil && ctx.Err() == nil {
		return o.result, t.timedOut(s.atDeadline(), o.err)
	}
	return o.result, o.err
}

func (t *timeout) timedOut(running []string, err error) error {
	return &TimeoutError{After: t.after, Action: t.action.Description(), Running: running, Err: err}
}

// scope knows which actions are running under one Timeout, and which were at its deadline.
type scope struct {
	outer *scope       // the Timeout around this one, nil if there is none
	over  func() error // not nil once the time is over

	mu        sync.Mutex // guards the fields below
	running   []*running // in the order in which they began; once the time is over none is taken out
	late      []*running // those that began when the time was over
	abandoned bool
}

// running is one run of a leaf.
type running struct {
	action *leaf
	ended  chan struct{} // closed at the end
}

func newScope(r *run, over func() error) *scope {
	s := &scope{over: over}
	if r != nil {
		s.outer = r.scope
	}
	return s
}

// begin notes that l runs under the scope and those around it, and returns what has to be called at its end.
func (s *scope) begin(l *leaf) (end func()) {
	this := &running{action: l, ended: make(chan struct{})}
	for o := s; o != nil; o = o.outer {
		o.add(this)
	}
	return func() {
		close(this.ended)
		for o := s; o != nil; o = o.outer {
			o.remove(this)
		}
		outliving.remove(this)
	}
}

// add notes that r has begun. What begins after the deadline, such as the tail of a Finally, was not running at it.
func (s *scope) add(r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() == nil {
		s.running = append(s.running, r)
	} else if s.late = append(s.late, r); s.abandoned {
		outliving.add(r)
	}
}

// remove forgets r, which has ended. What was running at the deadline stays: the error names it, however soon it ended after that.
func (s *scope) remove(r *running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over() == nil {
		s.running = slices.DeleteFunc(s.running, func(other *running) bool { return other == r })
	}
}

// abandon notes that nobody waits for the scope any more: what is running in it, or begins in it from now on, outlives it.
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

// outliving are the actions of this process that run on after their Timeout.
var outliving abandoned

type abandoned struct {
	count atomic.Int64 // of entries, so that a run that has nothing to fear takes no lock
	mu    sync.Mutex   // guards runs
	runs  map[any]*running
}

func (a *abandoned) add(r *running) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-r.ended:
		return
	default:
	}
	if a.runs == nil {
		a.runs = map[any]*running{}
	}
	if _, known := a.runs[r.action.identity]; !known {
		a.runs[r.action.identity] = r
		a.count.Add(1)
	}
}

func (a *abandoned) remove(r *running) {
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

func (a *abandoned) get(identity any) *running {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runs[identity]
}

// awaitAbandoned returns when no earlier run of l that outlived its timeout is running. It waits for that as long as ctx has time; where
// ctx has no deadline it does not wait, which would hold a worker for ever.
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
