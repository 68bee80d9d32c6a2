// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
)

// Retry runs action again while it fails, at most backoff.Steps times in all, and waits between two
// attempts as backoff says. It gives up at once on what another attempt cannot change: an exit, a
// wait, a terminal error (reconcile.TerminalError), the failure of a [Once], a panic, and a context
// that is done or will be before the next attempt. Of several errors, one that another attempt can
// change is enough to try again, unless another is a panic. The error is that of the last attempt.
//
// The worker is held while it waits. Retry in place only what resolves within moments, such as a
// conflict; for everything else return the error and leave the backoff to the queue.
func Retry(backoff wait.Backoff, action Action) Action {
	return &retry{backoff: backoff, action: runnerOf("Retry", action)}
}

type retry struct {
	backoff wait.Backoff
	action  runner
}

func (t *retry) Description() string { return t.Describe().String() }
func (t *retry) needsRun() bool      { return t.action.needsRun() }

func (t *retry) Describe() outline.Node {
	return outline.Node{Kind: outline.KindRetry, Label: fmt.Sprintf("%d times", max(t.backoff.Steps, 1)), Children: describeAll([]runner{t.action})}
}

func (t *retry) Run(ctx context.Context) (ctrl.Result, error) {
	ctx, r := enter(ctx, t)
	return t.runIn(ctx, r)
}

func (t *retry) runIn(ctx context.Context, r *run) (ctrl.Result, error) {
	backoff := t.backoff // a copy: its steps are counted down
	attempts := max(backoff.Steps, 1)
	for attempt := 1; ; attempt++ {
		inside, ir, s := r.open(ctx, nil)
		result, err := t.action.runIn(inside, ir)
		again := retryable(err)
		if again {
			err = afterAttempts(attempt, err)
		}
		s.close(result, err)
		if !again || attempt == attempts || !sleep(ctx, backoff.Step()) {
			return result, err
		}
		s.close(NoRequeue()) // the next attempt stands for it
	}
}

func afterAttempts(n int, err error) error {
	if n == 1 {
		return err
	}
	return fmt.Errorf("after %d attempts: %w", n, err)
}

func retryable(err error) bool {
	rest := withoutSignals(err)
	return !isSettled(rest, isShared) && !errors.As(rest, new(*PanicError))
}

// sleep waits for d and reports whether it did. It does not if ctx is done, or will be by then.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
