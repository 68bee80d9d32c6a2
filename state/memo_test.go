// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// counted returns a read function that returns the number of its call.
func counted(calls *atomic.Int32) func(context.Context) (int, error) {
	return func(context.Context) (int, error) { return int(calls.Add(1)), nil }
}

func TestMemoReadsOnce(t *testing.T) {
	var memo Memo[int]
	var calls atomic.Int32
	for range 3 {
		if got, err := memo.Get(t.Context(), counted(&calls)); got != 1 || err != nil {
			t.Fatalf("Get = %d, %v, want the result of the first read", got, err)
		}
	}
}

func TestMemoIsSharedByGoroutines(t *testing.T) {
	var memo Memo[int]
	var calls atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if got, err := memo.Get(t.Context(), counted(&calls)); got != 1 || err != nil {
				t.Errorf("Get = %d, %v, want the result of the only read", got, err)
			}
		})
	}
	wg.Wait()
}

func TestMemoDoesNotRememberErrors(t *testing.T) {
	var memo Memo[int]
	down := errors.New("down")
	if got, err := memo.Get(t.Context(), func(context.Context) (int, error) { return 7, down }); got != 0 || !errors.Is(err, down) {
		t.Fatalf("Get = %d, %v, want the error and nothing else", got, err)
	}
	var calls atomic.Int32
	if got, err := memo.Get(t.Context(), counted(&calls)); got != 1 || err != nil {
		t.Fatalf("Get after an error = %d, %v, want a new read", got, err)
	}
}

func TestMemoGivesWhatItHasToACancelledCaller(t *testing.T) {
	var memo Memo[int]
	var calls atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := memo.Get(ctx, counted(&calls)); err != nil {
		t.Fatal(err)
	}
	cancel()
	for range 20 {
		if got, err := memo.Get(ctx, counted(&calls)); got != 1 || err != nil {
			t.Fatalf("Get = %d, %v, want what was read before", got, err)
		}
	}
}

// slow starts a Get on another goroutine, whose read ends as end decides, and returns once the read
// has started.
func slow(ctx context.Context, memo *Memo[int], end func(context.Context) (int, error)) (outcome func() error) {
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if recover() != nil {
				err = errors.New("panicked")
			}
			done <- err
		}()
		_, err = memo.Get(ctx, end)
	}()
	synctest.Wait()
	return func() error { return <-done }
}

func TestMemoWaiterHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memo Memo[int]
		release := make(chan struct{})
		reader := slow(t.Context(), &memo, func(context.Context) (int, error) { <-release; return 1, nil })

		gone := errors.New("the waiter is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		waiter := slow(ctx, &memo, func(context.Context) (int, error) { return 2, nil })
		cancel(gone)
		if err := waiter(); !errors.Is(err, gone) {
			t.Errorf("the waiter got %v, want the cause of its context's end", err)
		}
		close(release)
		if err := reader(); err != nil {
			t.Errorf("the reader got %v", err)
		}
	})
}

func TestMemoWaiterGetsTheErrorOfTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var memo Memo[int]
		down := errors.New("down")
		release := make(chan struct{})
		reader := slow(t.Context(), &memo, func(context.Context) (int, error) { <-release; return 0, down })
		waiter := slow(t.Context(), &memo, func(context.Context) (int, error) { return 2, nil })
		close(release)
		if err := waiter(); !errors.Is(err, down) {
			t.Errorf("the waiter got %v, want the error of the read that it waited for", err)
		}
		if err := reader(); !errors.Is(err, down) {
			t.Errorf("the reader got %v", err)
		}
	})
}

func TestMemoWaiterReadsForItselfWhenTheReaderGaveUp(t *testing.T) {
	endings := map[string]func(ctx context.Context, release chan struct{}) (int, error){
		"canceled": func(ctx context.Context, _ chan struct{}) (int, error) { <-ctx.Done(); return 0, ctx.Err() },
		"panicked": func(_ context.Context, release chan struct{}) (int, error) { <-release; panic("on purpose") },
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var memo Memo[int]
				release := make(chan struct{})
				ctx, cancel := context.WithCancel(t.Context())
				reader := slow(ctx, &memo, func(ctx context.Context) (int, error) { return end(ctx, release) })
				var calls atomic.Int32
				waiters := []func() error{slow(t.Context(), &memo, counted(&calls)), slow(t.Context(), &memo, counted(&calls))}
				close(release)
				cancel()
				if err := reader(); err == nil {
					t.Error("the reader got no error")
				}
				for _, waiter := range waiters {
					if err := waiter(); err != nil {
						t.Errorf("a waiter got %v, want what it read itself", err)
					}
				}
				same(t, "reads by those who waited", 1, calls.Load())
			})
		})
	}
}
