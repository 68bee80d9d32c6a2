// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/cluster/tenure"
	"github.com/ctrlkit/ctrlkit/journal"
)

type configMap = *corev1.ConfigMap

// in returns an object whose resource is in a system.
func in(system string) configMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"system": system}}}
}

func systemOf(obj configMap) string { return obj.Labels["system"] }

var errUnreachable = errors.New("connection refused")

// answers returns a call with an answer, and counts it.
func answers(n *int, err error) func(context.Context) error {
	return func(context.Context) error {
		*n++
		return err
	}
}

// waitOf returns the wait in an error.
func waitOf(t *testing.T, err error) ctrlkit.Waiting {
	t.Helper()
	if waits := ctrlkit.Waits(err); len(waits) == 1 {
		return waits[0]
	}
	t.Fatalf("no wait: %v", err)
	return ctrlkit.Waiting{}
}

func TestCallHasDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, given := range map[time.Duration]time.Duration{30 * time.Second: 0, time.Minute: time.Minute} {
			c, began := newCalls(Calls[configMap]{Deadline: given}), time.Now()
			err := c.do(t.Context(), in("a"), "observe", func(ctx context.Context) error {
				<-ctx.Done()
				return ctx.Err()
			})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != want {
				t.Errorf("error %v after %v, want %v", err, time.Since(began), want)
			}
		}
	})
}

// After the Lease has expired no call begins, and one that runs ends with it. Neither says anything of
// the system, which is called again when the Lease is renewed.
func TestCallsEndWithTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tn tenure.Tenure
		tn.Renew(time.Now(), 15*time.Second)
		ctx, c, n, began := tn.Context(t.Context()), newCalls(Calls[configMap]{Failures: 1}), 0, time.Now()
		err := c.do(ctx, in("a"), "create", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, tenure.ErrExpired) || time.Since(began) != 15*time.Second {
			t.Errorf("a call has ended with %v after %v", err, time.Since(began))
		}
		for what, err := range map[string]error{"create": c.do(ctx, in("a"), "create", answers(&n, nil)), "connect": c.connect(ctx, in("a"), answers(&n, nil))} {
			if !errors.Is(err, tenure.ErrExpired) || n > 0 || failure.Classify(err).Class != failure.ClassCanceled {
				t.Errorf("%s: %v, and %d calls", what, err, n)
			}
		}
		tn.Renew(time.Now(), 15*time.Second)
		if err := c.do(ctx, in("a"), "create", answers(&n, nil)); err != nil || n != 1 {
			t.Errorf("with the Lease: %v, and %d calls", err, n)
		}
	})
}

func TestCallsAreLimitedPerSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{PerSecond: 2, Burst: 3, System: systemOf}), 0
		began := time.Now()
		for range 7 {
			if err := c.do(t.Context(), in("a"), "observe", answers(&n, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if got := time.Since(began); got != 2*time.Second || n != 7 {
			t.Errorf("7 calls, 3 at once and 2 in a second, took %v", got)
		}
		began = time.Now()
		for range 3 {
			_ = c.do(t.Context(), in("b"), "observe", answers(&n, nil))
		}
		for range 10 {
			_ = c.connect(t.Context(), in("a"), answers(&n, nil))
		}
		if got := time.Since(began); got != 0 {
			t.Errorf("another system, or a connection, has waited for %v", got)
		}
	})
}

func TestRateBeyondTheDeadlineIsAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{PerSecond: 0.01, System: systemOf}), 0
		_ = c.do(t.Context(), in("a"), "observe", answers(&n, nil))
		wait := waitOf(t, c.do(t.Context(), in("a"), "observe", answers(&n, nil)))
		if want := (ctrlkit.Waiting{For: "the rate limit of the external system a", Every: 100 * time.Second}); wait != want || n != 1 {
			t.Errorf("%+v with %d calls", wait, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.do(ctx, in("a"), "observe", answers(&n, nil)); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

func TestBreakerOpensForUnreachableSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{System: systemOf, Failures: 3, Pause: time.Minute}), 0
		call := func(err error) error { return c.do(t.Context(), in("a"), "observe", answers(&n, err)) }
		for range 2 {
			_ = call(errUnreachable)
		}
		_ = call(nil) // it is reached: the count begins again
		for range 3 {
			// The connection of a pool is there also when the system is not.
			_ = c.connect(t.Context(), in("a"), answers(new(int), nil))
			if err := call(errUnreachable); !errors.Is(err, errUnreachable) {
				t.Fatal(err)
			}
		}
		const want = "the external system a, which has failed 3 times in a row: connection refused"
		if wait := waitOf(t, call(nil)); wait.For != want || wait.Every < 54*time.Second || wait.Every > 66*time.Second || n != 6 {
			t.Fatalf("%+v with %d calls", wait, n)
		}
		if err := c.connect(t.Context(), in("a"), answers(new(int), nil)); err != nil {
			t.Fatalf("what does not dial is prevented: %v", err)
		}
		if err := c.do(t.Context(), in("b"), "observe", answers(new(int), nil)); err != nil {
			t.Errorf("another system: %v", err)
		}
		time.Sleep(2 * time.Minute)
		_ = call(errUnreachable) // one try
		waitOf(t, call(nil))
		if n != 7 {
			t.Errorf("%d calls, want one while half open", n)
		}
		time.Sleep(time.Minute + time.Second)
		for range 3 {
			if err := call(nil); err != nil {
				t.Errorf("it is reached again: %v", err)
			}
		}
	})
}

// While a system can't be reached, a call that tries again ends as those that do not: an error at
// each try would be another condition.
func TestBreakerHoldsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{Failures: 2, Pause: time.Minute}), 0
		call := func() error { return c.do(t.Context(), in("a"), "observe", answers(&n, errUnreachable)) }
		for range 2 {
			if err := call(); !errors.Is(err, errUnreachable) {
				t.Fatalf("%v", err)
			}
		}
		want := waitOf(t, call())
		for range 3 {
			time.Sleep(time.Minute + time.Second)
			before := n
			if got := waitOf(t, call()); got != want || n != before+1 {
				t.Errorf("wait %v after %d calls, want %v after one", got, n-before, want)
			}
		}
	})
}

func TestBreakerCountsOnlyUnreachable(t *testing.T) {
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "credentials")
	wait := ctrlkit.Wait("Secret default/credentials")
	for name, tt := range map[string]struct {
		err  error
		open bool
	}{
		"refused connection": {errUnreachable, true},
		"deadline":           {fmt.Errorf("GET: %w", context.DeadlineExceeded), true},
		"canceled":           {fmt.Errorf("GET: %w", context.Canceled), false},
		"refusal":            {Refused(errors.New("409")), false},
		"invalid":            {failure.Mark(errors.New("400"), failure.WithClass(failure.ClassInvalid)), false},
		"terminal":           {failure.Mark(errors.New("403"), failure.WithClass(failure.ClassTerminal)), false},
		"throttled":          {failure.Mark(errors.New("429"), failure.WithClass(failure.ClassThrottled)), false},
		"missing secret":     {notFound, false},
		"wait":               {wait, false},
	} {
		synctest.Test(t, func(t *testing.T) { // a call after one that was throttled waits for its turn
			c, n := newCalls(Calls[configMap]{}), 0
			for range 20 {
				_ = c.do(t.Context(), in("a"), "observe", answers(&n, tt.err))
			}
			if want := map[bool]int{true: 5, false: 20}[tt.open]; n != want {
				t.Errorf("%s: %d of 20 calls were made, want %d", name, n, want)
			}
		})
	}
}

// An object whose system answers takes no memory for failures; one that fails, and shared limits,
// do.
func TestBreakersAreOfFailures(t *testing.T) {
	object := func(uid types.UID) configMap { return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{UID: uid}} }
	c, n := newCalls(Calls[configMap]{}), 0
	try := func(uid types.UID, err error, want int) {
		t.Helper()
		_ = c.do(t.Context(), object(uid), "observe", answers(&n, err)) // the answers are known
		if len(c.breakers) != want {
			t.Errorf("%d breakers, want %d", len(c.breakers), want)
		}
	}
	try("a", nil, 0)
	try("a", errUnreachable, 1)
	try("b", errUnreachable, 2)
	try("b", Refused(errors.New("409")), 1)
	for range 4 {
		try("a", errUnreachable, 1)
	}
	made := n
	try("a", nil, 1)
	if n != made {
		t.Error("a system that failed five times in a row is called")
	}
	shared := newCalls(Calls[configMap]{System: systemOf})
	_ = shared.do(t.Context(), in("a"), "observe", answers(&n, nil)) // the same
	if len(shared.breakers) != 1 {
		t.Errorf("%d breakers of a system that objects share, want one", len(shared.breakers))
	}
}

func TestPanicSaysNothingOfTheSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, n := newCalls(Calls[configMap]{Failures: 1, Pause: time.Minute}), 0
		panics := func() (recovered any) {
			defer func() { recovered = recover() }()
			return c.do(t.Context(), in("a"), "observe", func(context.Context) error { panic("bug") })
		}
		for range 3 {
			if got := panics(); got != "bug" {
				t.Fatalf("recovered %v", got)
			}
		}
		_ = c.do(t.Context(), in("a"), "observe", answers(&n, errUnreachable))
		time.Sleep(time.Minute + time.Second)
		_ = panics() // half open, it neither closes nor opens the breaker
		_ = c.do(t.Context(), in("a"), "observe", answers(&n, errUnreachable))
		waitOf(t, c.do(t.Context(), in("a"), "observe", answers(&n, nil)))
		if n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

// entries is an observer that keeps what it is given.
type entries struct {
	mu  sync.Mutex // for all below
	all []journal.Entry
}

func (e *entries) Observe(_ context.Context, entry journal.Entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, entry)
}

func TestCallIsInJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &entries{}
		ctx := journal.ContextWithRun(t.Context(), journal.NewRun(seen, types.UID("uid"), "buckets", journal.Object{Name: "a"}))
		ctx = journal.ContextWithStep(ctx, "Bucket")
		c := newCalls(Calls[configMap]{Failures: 1})
		call := func(context.Context) error {
			time.Sleep(50 * time.Millisecond)
			return errUnreachable
		}
		_ = c.do(ctx, in("a"), "observe", call)
		_ = c.do(ctx, in("a"), "observe", call) // prevented: it is not recorded as a call
		var got []journal.Event
		for _, e := range seen.all {
			got = append(got, e.Event)
		}
		want := []journal.Event{journal.Called{Step: "Bucket", What: "observe", Duration: 50 * time.Millisecond, Err: errUnreachable}}
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
			t.Error(diff)
		}
	})
}

func TestCallsUnderRace(t *testing.T) {
	c := newCalls(Calls[configMap]{System: systemOf, PerSecond: 1e6, Burst: 100})
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := c.do(t.Context(), in(fmt.Sprint(i%3)), "observe", func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(c.places) != 3 {
		t.Errorf("%d systems", len(c.places))
	}
}

func TestStatesHaveNames(t *testing.T) {
	var all []string
	for s := Absent - 1; s <= Broken+1; s++ {
		all = append(all, s.String())
	}
	const want = "invalid, absent, up to date, drifted, creating, updating, deleting, broken, invalid"
	if got := strings.Join(all, ", "); got != want {
		t.Errorf("states are %s", got)
	}
}
