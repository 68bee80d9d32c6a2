// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// An Action is one unit of work in a workflow.
type Action interface {
	// Description names the action: short, the same at every call, and without a line break.
	Description() string

	// Run does the work. It is called by the combinator that holds the action, at most once at a
	// time for one run of the workflow, and possibly beside other actions on other goroutines.
	//
	//   - Run must be idempotent: it is called again after every error, crash and change.
	//   - It should return soon after ctx is done.
	//   - A non-nil error, [Wait] and a result that requeues interrupt the sequence that the
	//     action is part of; [RequeueWithin] does not.
	//   - An action may change only what is its own. Values that other actions of the same run
	//     receive too (states, the target) are shared: copy it before you change it.
	Run(ctx context.Context) (ctrl.Result, error)
}

// An ActionOption changes how one action is run. Generated managers take the same options and apply
// them to every action that they make.
type ActionOption func(*leaf)

// WithHook has h called around this action, inside the hooks of the context.
func WithHook(h Hook) ActionOption {
	return func(l *leaf) { l.hook = ChainHooks(l.hook, h) }
}

// WithState passes state, which the action reads the world from, to hooks: see [StateFromContext].
// Generated managers pass their getters.
func WithState(state any) ActionOption {
	return func(l *leaf) { l.state = state }
}

// WithLogger passes the logger of the action to hooks: see [LoggerFromContext]. Generated managers
// pass theirs.
func WithLogger(logger logr.Logger) ActionOption {
	return func(l *leaf) { l.logger = logger }
}

// WithObject sets the object that the action works for. Two actions of the same description for the
// same object are the same work, also in the workflows of different reconciles: while one that
// outlived its [Timeout] is still running, the other is not started. Without this option
// only the same Action value is recognized.
func WithObject(obj client.Object) ActionOption {
	return func(l *leaf) {
		l.identity = objectAction{
			object:      reflect.TypeOf(obj),
			key:         client.ObjectKeyFromObject(obj),
			uid:         obj.GetUID(),
			description: l.description,
		}
	}
}

type objectAction struct {
	object      reflect.Type
	key         types.NamespacedName
	uid         types.UID
	description string
}

// NewAction returns an action that calls run.
//
// The error that it returns is run's, wrapped in an [ActionError]. A panic of run is returned as a
// [PanicError].
func NewAction(description string, run func(context.Context) (ctrl.Result, error), opts ...ActionOption) Action {
	if run == nil {
		panic("ctrlkit: NewAction " + description + ": run is nil")
	}
	l := &leaf{description: description, run: run}
	l.identity = l
	for _, opt := range opts {
		opt(l)
	}
	return l
}

// Nop returns an action that does nothing.
func Nop() Action { return nop{} }

type nop struct{}

func (nop) Description() string                              { return "Nop" }
func (nop) Run(context.Context) (ctrl.Result, error)         { return NoRequeue() }
func (nop) runIn(context.Context, *run) (ctrl.Result, error) { return NoRequeue() }
func (nop) needsRun() bool                                   { return false }
func (nop) Describe() outline.Node                           { return outline.Node{Kind: outline.KindNop} }

// A leaf is an action with work of its own, as opposed to a combinator.
type leaf struct {
	description string
	run         func(context.Context) (ctrl.Result, error)
	hook        Hook
	state       any         // nil if it is not known
	logger      logr.Logger // zero if it is not known
	// identity is comparable; two leaves with equal identities must not run at the same time.
	identity any
}

func (l *leaf) Description() string { return l.description }
func (l *leaf) needsRun() bool      { return false }
func (l *leaf) Describe() outline.Node {
	return outline.Node{Kind: outline.KindAction, Label: l.description}
}

func (l *leaf) Run(ctx context.Context) (ctrl.Result, error) { return l.runIn(ctx, runFrom(ctx)) }

func (l *leaf) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	ctx, cancel, err := tenure.Begin(ctx)
	defer cancel()
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("%s was not started: %w", l.description, err)
	}
	if r == nil && l.hook == nil && outliving.count.Load() == 0 {
		return l.call(ctx)
	}
	if r.observer() != nil || l.hook != nil {
		ctx = l.withDetails(ctx)
	}
	return hooked(ctx, r.observer(), l.description, func(ctx context.Context) (ctrl.Result, error) {
		return hooked(ctx, l.hook, l.description, func(ctx context.Context) (ctrl.Result, error) {
			return l.exclusively(ctx, r)
		})
	})
}

// exclusively is call where no other run of the action may be running, and known to the timeouts
// that it runs under.
func (l *leaf) exclusively(ctx context.Context, r *run) (ctrl.Result, error) {
	ctx, r, s := r.open(ctx, l)
	if err := s.admit(ctx, r, l); err != nil {
		err = &ActionError{Action: l.description, Err: err}
		s.close(ctrl.Result{}, err)
		return ctrl.Result{}, err
	}
	s.begin()
	defer s.end(r) // also when the goroutine is ended
	result, err := l.call(ctx)
	s.close(result, err)
	return result, err
}

// call runs the action, turns a panic into an error and names the action in it.
func (l *leaf) call(ctx context.Context) (result ctrl.Result, err error) {
	panicked := true
	defer func() {
		if panicked {
			if v := recover(); v != nil {
				result, err = ctrl.Result{}, &ActionError{Action: l.description, Err: newPanicError(ctx, l.description, v)}
			}
		}
	}()
	result, err = lift(l.run(ctx))
	panicked = false
	if err != nil {
		err = &ActionError{Action: l.description, Err: err}
	}
	return result, err
}

// A runner is an action of this package: it hands the run on without a detour through the context.
type runner interface {
	Action
	runIn(ctx context.Context, r *run) (ctrl.Result, error)
	// needsRun reports whether the action, or one below it, shares something in a run ([Once],
	// [Timeout]).
	needsRun() bool
}

// runners returns actions as runners, in a slice of its own: the caller's is neither kept nor
// changed.
func runners(combinator string, actions []Action) []runner {
	rs := make([]runner, len(actions))
	for i, a := range actions {
		rs[i] = runnerOf(combinator, a)
	}
	return rs
}

// runnerOf returns a itself when it is one of this package's, and otherwise a leaf that runs it.
func runnerOf(combinator string, a Action) runner {
	switch a := a.(type) {
	case nil:
		panic("ctrlkit: " + combinator + " was given a nil action")
	case runner:
		return a
	default:
		return &foreign{leaf: leaf{description: a.Description(), run: a.Run, identity: identityOf(a)}, action: a}
	}
}

func identityOf(a Action) any {
	if reflect.TypeOf(a).Kind() == reflect.Pointer {
		return a
	}
	return new(byte) // a value of its own: a type that is not a pointer says nothing about being the same work
}

// foreign is an action of a type that this package does not know. Actions that it runs inside find
// the run in the context.
type foreign struct {
	leaf
	action Action
}

func (f *foreign) Describe() outline.Node { return Describe(f.action) }
