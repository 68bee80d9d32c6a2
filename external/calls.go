// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
	"github.com/ctrlkit/ctrlkit/internal/engine/track"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Calls limit the calls of an external system. All may be zero.
type Calls[T client.Object] struct {
	// Deadline is how long each call may take: 30 seconds if it is zero.
	Deadline time.Duration

	// System names the system that the resource of an object is in, for example its address. Each
	// has limits of its own. Without it, the key that Connect has given to [Pool.Get] names it; and
	// without a Pool all objects share PerSecond, and no object is left alone because of another one.
	System func(obj T) string

	// PerSecond is how many calls there are in a second at most, and Burst how many at once.
	// Without a limit there are as many as workers. A call waits for half of the Deadline at most;
	// one that would wait longer is made in a later reconcile, and keeps its place.
	PerSecond float64
	Burst     int

	// Failures is after how many failures in a row a system is left alone for Pause: 5, and 30
	// seconds. It ends earlier when an object changes that Connect reads, such as the credentials.
	// What the client has marked as an answer does not count, such as that a name is invalid; any
	// other error does, also one such as "500" or "401".
	Failures int
	Pause    time.Duration

	shared *calls[T] // of Shared
}

// Shared returns calls whose limits hold for all who are given them together: for the reconciles of
// Options.Calls, and for the imports of [ImportOf].
func (c Calls[T]) Shared() Calls[T] {
	c.shared = newCalls(c)
	return c
}

// calls are the limits of all systems.
type calls[T client.Object] struct {
	Calls[T]
	mu       sync.Mutex // for all below
	places   map[string]*places
	breakers map[string]*breaker
	keys     map[types.UID]string // with which Connect has asked a Pool
}

// A breaker leaves a system alone that could not be reached.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[any]
	dials atomic.Bool // Connect has failed to reach it: it dials, and is left alone, too

	mu   sync.Mutex           // for all below
	last string               // what has failed last, as it was first said
	read map[types.UID]string // the versions of what Connect has read
}

// failing says of a system that it is left alone, and why. It holds still while only numbers
// differ, such as those of requests.
func (b *breaker) failing(times int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	text := fmt.Sprintf("%s, which has failed %d times in a row", b.Name(), times)
	if b.last != "" {
		text += ": " + b.last
	}
	return text
}

// failed notes what a call shows of the system.
func (b *breaker) failed(reached error) {
	if !counts(reached) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if said := reached.Error(); numbers.ReplaceAllString(said, "") != numbers.ReplaceAllString(b.last, "") {
		b.last = said
	}
}

// numbers matches what differs between two answers that say the same.
var numbers = regexp.MustCompile(`[0-9a-fA-F-]*[0-9][0-9a-fA-F-]*`)

// readings are the versions of what a Connect has read: of objects without a generation, such as
// Secrets, that of their content.
type readings struct {
	mu       sync.Mutex // for versions
	versions map[types.UID]string
}

func newReadings() *readings { return &readings{versions: make(map[types.UID]string)} }

func (r *readings) note(obj client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[obj.GetUID()] = obj.GetResourceVersion()
	if generation := obj.GetGeneration(); generation != 0 {
		r.versions[obj.GetUID()] = strconv.FormatInt(generation, 10)
	}
}

// snapshot returns what was read until now.
func (r *readings) snapshot() map[types.UID]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.versions)
}

// connectedWith ends that a system is left alone if what Connect has read is not as it was: other
// credentials, or another address.
func (c *calls[T]) connectedWith(obj T, read *readings) {
	name, _, b := c.of(obj)
	b.mu.Lock()
	changed := false
	for uid, version := range read.snapshot() {
		was, known := b.read[uid]
		changed = changed || known && was != version
		b.read[uid] = version
	}
	known := maps.Clone(b.read)
	b.mu.Unlock()
	if !changed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, other := range c.breakers {
		if other == b {
			c.breakers[key] = c.newBreaker(name)
			c.breakers[key].read = known
		}
	}
}

func newCalls[T client.Object](c Calls[T]) *calls[T] {
	if c.shared != nil {
		return c.shared
	}
	c.Deadline, c.Failures, c.Pause = cmp.Or(c.Deadline, 30*time.Second), cmp.Or(c.Failures, 5), cmp.Or(c.Pause, 30*time.Second)
	return &calls[T]{Calls: c, places: make(map[string]*places), breakers: make(map[string]*breaker), keys: make(map[types.UID]string)}
}

// of returns the limits of the system of an object. Name is that of messages: the key of a pool may
// have what is secret.
func (c *calls[T]) of(obj T) (name string, s *places, b *breaker) {
	name = "the external system"
	key := ""
	if c.System != nil {
		key = c.System(obj)
		name += " " + key
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	alone := ""
	if c.System == nil {
		if key = c.keys[obj.GetUID()]; key == "" {
			alone = string(obj.GetUID())
		}
	}
	s, b = c.at(key, alone, name)
	return name, s, b
}

// at returns the limits for a key. The mutex is held.
func (c *calls[T]) at(key, alone, name string) (s *places, b *breaker) {
	if s = c.places[key]; s == nil {
		s = newPlaces(c.PerSecond, c.Burst)
		c.places[key] = s
	}
	if b = c.breakers[key+"\n"+alone]; b == nil {
		b = c.newBreaker(name)
		c.breakers[key+"\n"+alone] = b
	}
	return s, b
}

func (c *calls[T]) newBreaker(name string) *breaker {
	return &breaker{read: make(map[types.UID]string), TwoStepCircuitBreaker: gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Name: name, Timeout: c.Pause - c.Pause/8, // an object comes back a tenth earlier or later than Pause, and then tries
		IsExcluded:  func(err error) bool { return errors.Is(err, errNotCalled) },
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= uint32(c.Failures) }, //nolint:gosec // a small number
	})}
}

// forget drops what is known of an object.
func (c *calls[T]) forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keys, uid)
	delete(c.breakers, "\n"+string(uid))
}

// do calls the system of an object, as soon as its limits allow that, and records the call in the
// journal. A system that asks for fewer calls gets fewer, from all objects: the call then waits for
// its turn, and is no failure.
func (c *calls[T]) do(ctx context.Context, obj T, what string, call func(ctx context.Context) error) error {
	name, s, b := c.of(obj)
	return c.guarded(obj, b, func() (reached, err error) {
		ctx, cancel := context.WithTimeout(ctx, c.Deadline)
		defer cancel()
		of := callOf{obj.GetUID(), what}
		if err := s.await(ctx, of, c.Deadline/2, name); err != nil {
			return errNotCalled, err
		}
		err = noted(ctx, what, call)
		after, slower := throttled(err)
		if !slower {
			s.answered()
			return unreachable(err), err
		}
		s.slow()
		return nil, s.later(of, after, name)
	})
}

// tries is how often ask calls a system that asks for fewer calls.
const tries = 5

// ask calls a system on behalf of no object, as its limits allow. It waits, also for a system that asks
// for fewer calls. A failure does not count against the system, because it may be one of the caller.
func (c *calls[T]) ask(ctx context.Context, system string, call func(ctx context.Context) error) error {
	name, key := "the external system "+system, ""
	if c.System != nil {
		key = system
	}
	c.mu.Lock()
	s, b := c.at(key, "", name)
	c.mu.Unlock()
	for try := 1; ; try++ {
		if b.State() == gobreaker.StateOpen {
			return errors.New(b.failing(c.Failures))
		}
		if err := s.limiter.Wait(ctx); err != nil {
			return err
		}
		calling, cancel := context.WithTimeout(ctx, c.Deadline)
		err := call(calling)
		cancel()
		after, slower := throttled(err)
		if !slower {
			s.answered()
			return err
		}
		if s.slow(); try == tries {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(max(after, time.Second)):
		}
	}
}

// connect is do for what makes a client. Mostly it has a connection already, and calls nothing: no
// rate limits it, and that it succeeds shows nothing of the system. A connector that dials itself is
// not called while the system is left alone; one that reads its credentials, and has a [Pool] dial,
// or a call, always is.
func (c *calls[T]) connect(ctx context.Context, obj T, connect func(ctx context.Context) error) error {
	_, _, b := c.of(obj)
	read := newReadings()
	dial := &dialing{allow: func(dial func() error) error {
		_, _, b := c.of(obj) // the key is known now
		return c.guarded(obj, b, func() (reached, err error) { return unreached(dial()) })
	}, use: func(key string) {
		c.mu.Lock()
		c.keys[obj.GetUID()] = key
		c.mu.Unlock()
		c.connectedWith(obj, read) // before it dials
	}}
	call := func() (reached, err error) {
		ctx, cancel := context.WithTimeout(context.WithValue(track.WithPrompt(ctx, read.note), dialingKey{}, dial), c.Deadline)
		defer cancel()
		err = noted(ctx, "connect", connect)
		c.connectedWith(obj, read)
		if _, _, b = c.of(obj); err == nil || dial.asked {
			return errNotCalled, err
		}
		if reached = unreachable(err); counts(reached) {
			b.dials.Store(true)
		}
		return reached, err
	}
	if b.dials.Load() {
		return c.guarded(obj, b, call)
	}
	reached, err := call()
	if b.failed(reached); counts(reached) {
		if done, open := b.Allow(); open == nil {
			done(reached)
		}
	}
	return c.soon(reached, err)
}

// unreached returns what a dial shows of the system, and its error.
func unreached(err error) (reached, same error) {
	if err == nil {
		return errNotCalled, nil
	}
	return unreachable(err), err
}

// dialing is how a [Pool] dials on behalf of a Connect.
type dialing struct {
	asked bool
	allow func(dial func() error) error
	use   func(key string)
}

type dialingKey struct{}

// dialingOf returns that of the Connect in which a connection is asked for; outside of one, it allows
// everything.
func dialingOf(ctx context.Context) *dialing {
	if d, ok := ctx.Value(dialingKey{}).(*dialing); ok {
		d.asked = true
		return d
	}
	return &dialing{allow: func(dial func() error) error { return dial() }, use: func(string) {}}
}

// guarded calls a system unless it could not be reached lately. What call returns first is what it
// shows of the system. While the system can't be reached, each call ends with the same wait, also
// the one that tries again: the conditions of its objects hold still.
func (c *calls[T]) guarded(obj T, b *breaker, call func() (reached, err error)) error {
	wait := func() error {
		wait := ctrlkit.Poll(b.failing(c.Failures), spread(c.Pause, obj))
		return &unreachedError{wait}
	}
	again := b.State() == gobreaker.StateHalfOpen
	done, open := b.Allow()
	if open != nil {
		return wait()
	}
	reached := errNotCalled
	defer func() { // also after a panic
		if done(reached); reached == nil {
			c.recovered(obj, b)
		}
	}()
	var err error
	reached, err = call()
	if b.failed(reached); again && counts(reached) {
		return wait()
	}
	return c.soon(reached, err)
}

// recovered drops the breaker of an object whose system answers, if no other object shares it:
// the next failure makes a new one. There are as many of these as objects.
func (c *calls[T]) recovered(obj T, b *breaker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if key := "\n" + string(obj.GetUID()); c.breakers[key] == b {
		delete(c.breakers, key)
	}
}

// soon has a failure that counts against the system tried again within Pause, as it is once the
// system is left alone: the failures of other steps of an object make its backoff no longer.
func (c *calls[T]) soon(reached, err error) error {
	if !counts(reached) {
		return err
	}
	return failure.Mark(err, failure.WithBackoff(failure.Backoff{Max: c.Pause}))
}

// noted calls, and records that in the journal. It does not while another process may have the object:
// what it makes could land after the other one has cleaned up.
func noted(ctx context.Context, what string, call func(ctx context.Context) error) error {
	ctx, cancel, err := tenure.Begin(ctx)
	defer cancel()
	if err != nil {
		return fmt.Errorf("the external system was not called: %w", err)
	}
	began := time.Now()
	err = call(ctx)
	journal.RunFromContext(ctx).Note(ctx, journal.Called{Step: journal.StepFromContext(ctx), What: what, Duration: time.Since(began), Err: err})
	return err
}

// errNotCalled is what a circuit breaker counts neither as a success nor as a failure: it shows
// nothing of the system.
var errNotCalled = errors.New("the system was not called")

// counts reports whether what a call shows of the system counts as a failure of it.
func counts(reached error) bool { return reached != nil && !errors.Is(reached, errNotCalled) }

// unreachable returns what a call shows of the system: nil if it has answered, errNotCalled if
// that is not known.
func unreachable(err error) error {
	switch {
	case err == nil || answer.IsRefused(err):
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
