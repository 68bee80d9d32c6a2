// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Calls limit the calls of an external system. All may be zero.
type Calls[T client.Object] struct {
	// Deadline is how long each call may take: 30 seconds if it is zero.
	Deadline time.Duration

	// System names the system that the resource of an object is in, for example its address. Each
	// has limits of its own. Without it, all objects are in one system.
	System func(obj T) string

	// PerSecond is how many calls there are in a second at most, and Burst how many at once.
	// Without a limit there are as many as workers. A call waits for half of the Deadline at most;
	// one that would wait longer is made in a later reconcile, and keeps its place.
	PerSecond float64
	Burst     int

	// Failures is after how many failures in a row a system is left alone for Pause: 5, and 30
	// seconds. Only failures to reach it count, and none that it answers with, such as that a name
	// is invalid.
	Failures int
	Pause    time.Duration
}

// calls are the limits of all systems.
type calls[T client.Object] struct {
	Calls[T]
	mu      sync.Mutex // for systems
	systems map[string]*system
}

type system struct {
	places  *places // nil without a limit
	breaker *gobreaker.TwoStepCircuitBreaker[any]
}

func newCalls[T client.Object](c Calls[T]) *calls[T] {
	c.Deadline, c.Failures, c.Pause = cmp.Or(c.Deadline, 30*time.Second), cmp.Or(c.Failures, 5), cmp.Or(c.Pause, 30*time.Second)
	return &calls[T]{Calls: c, systems: make(map[string]*system)}
}

// of returns the limits of the system of an object.
func (c *calls[T]) of(obj T) (string, *system) {
	name := "the external system"
	if c.System != nil {
		name += " " + c.System(obj)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.systems[name]
	if s == nil {
		s = &system{breaker: gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
			Name: name, Timeout: c.Pause,
			IsExcluded:  func(err error) bool { return errors.Is(err, errNotCalled) },
			ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= uint32(c.Failures) }, //nolint:gosec // a small number
		})}
		if c.PerSecond > 0 {
			s.places = newPlaces(c.PerSecond, c.Burst)
		}
		c.systems[name] = s
	}
	return name, s
}

// do calls the system of an object, as soon as its limits allow that, and records the call in the
// journal.
func (c *calls[T]) do(ctx context.Context, obj T, what string, call func(ctx context.Context) error) error {
	name, s := c.of(obj)
	return c.guarded(name, s, func() (reached, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.Deadline)
		defer cancel()
		if err := s.places.await(ctx, callOf{obj.GetUID(), what}, c.Deadline/2, name); err != nil {
			return errNotCalled, err
		}
		err = noted(ctx, what, call)
		return unreachable(err), err
	})
}

// connect is do for what makes a client. Mostly it has a connection already, and calls nothing: no
// rate limits it, and that it succeeds shows nothing of the system.
func (c *calls[T]) connect(ctx context.Context, obj T, connect func(ctx context.Context) error) error {
	name, s := c.of(obj)
	return c.guarded(name, s, func() (reached, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.Deadline)
		defer cancel()
		if err = noted(ctx, "connect", connect); err == nil {
			return errNotCalled, nil
		}
		return unreachable(err), err
	})
}

// guarded calls a system unless it could not be reached lately. What call returns first is what it
// shows of the system. While the system can't be reached, each call ends with the same wait, also
// the one that tries again: the conditions of its objects hold still.
func (c *calls[T]) guarded(name string, s *system, call func() (reached, err error)) error {
	_, wait := ctrlkit.PollFor(fmt.Sprintf("%s, which could not be reached %d times in a row", name, c.Failures), c.Pause)
	wait = &unreachedError{wait}
	again := s.breaker.State() == gobreaker.StateHalfOpen
	done, open := s.breaker.Allow()
	if open != nil {
		return wait
	}
	reached := errNotCalled
	defer func() { done(reached) }() // also after a panic
	var err error
	if reached, err = call(); again && reached != nil && !errors.Is(reached, errNotCalled) {
		return wait
	}
	return err
}

// noted calls, and records that in the journal.
func noted(ctx context.Context, what string, call func(ctx context.Context) error) error {
	began := time.Now()
	err := call(ctx)
	journal.RunFromContext(ctx).Note(ctx, journal.Called{Step: journal.StepFromContext(ctx), What: what, Duration: time.Since(began), Err: err})
	return err
}

// errNotCalled is what a circuit breaker counts neither as a success nor as a failure: it shows
// nothing of the system.
var errNotCalled = errors.New("the system was not called")

// unreachable returns what a call shows of the system: nil if it has answered, errNotCalled if
// that is not known.
func unreachable(err error) error {
	switch {
	case err == nil || IsRefused(err):
		return nil
	case len(ctrlkit.Waits(err)) > 0 || errors.Is(err, context.Canceled):
		return errNotCalled
	case failure.Classify(err).Class != failure.ClassTransient:
		return nil
	}
	return err
}

// An unreachedError is the wait for a system that could not be reached several times in a row.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// canAnswer reports whether an error says no more than that it was not the time to call the system.
func canAnswer(err error) bool {
	if errors.As(err, new(*unreachedError)) {
		return false
	}
	class := failure.Classify(err).Class
	return len(ctrlkit.Waits(err)) > 0 || class == failure.ClassThrottled || class == failure.ClassCanceled
}
