// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errInterrupted is the cause of a context that a signal canceled.
var errInterrupted = errors.New("interrupted")

// interruptible returns a context that the first SIGINT or SIGTERM cancels with errInterrupted as
// its cause. The second one ends the process at once: the processes that it started must end by
// themselves then.
func interruptible(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
		case <-done:
			return
		}
		select {
		case <-signals:
			os.Exit(exitInterrupted)
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// interruptGrace is how long a command that works on documents may take to end by itself after a
// signal, so that no file is half replaced.
const interruptGrace = 200 * time.Millisecond

// endOnInterrupt ends the process soon after the signal that cancels ctx. It is for commands that
// do not check their context while they read documents, and that start no processes. The returned
// function reverts that.
func endOnInterrupt(ctx context.Context) (stop func()) {
	if ctx == nil {
		return func() {} // cobra has none if the command was executed without one
	}
	stopped := context.AfterFunc(ctx, func() {
		if errors.Is(context.Cause(ctx), errInterrupted) {
			time.AfterFunc(interruptGrace, func() { os.Exit(exitInterrupted) })
		}
	})
	return func() { stopped() }
}
