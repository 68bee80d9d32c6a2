// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The picture is redrawn at most every refreshEvery, and, since it shows ages, at least every
// ageEvery.
const (
	refreshEvery = 200 * time.Millisecond
	ageEvery     = time.Second
)

// show shows the objects until the run ends.
func (r *runner) show(ctx context.Context) error {
	world := NewWorld(r.topKinds()...)
	display := r.display()
	if r.live != nil {
		defer r.steps.cover(r.queue)()
	}
	err := r.follow(ctx, world, display)
	display.leave(world, time.Now())
	if errors.Is(err, ErrOperatorEnded) {
		return r.operatorEnded()
	}
	return err
}

// follow feeds the display until the run ends.
func (r *runner) follow(ctx context.Context, world *World, display display) error {
	var ended, timedOut <-chan time.Time
	complete := r.complete
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	changed, drawn := true, time.Time{}
	for {
		select {
		case <-complete:
			complete = nil
			ended, timedOut = after(r.For), after(r.Timeout)
		case <-r.queue.ready:
			changed = true
			if err := r.takeItems(world, display); err != nil {
				return err
			}
			if r.conditionsHold(world) {
				return nil
			}
		case now := <-ticker.C:
			if changed || now.Sub(drawn) >= ageEvery {
				if err := display.refresh(world, now); err != nil {
					return fmt.Errorf("drawing: %w", err)
				}
				changed, drawn = false, now
			}
		case <-r.operator.ended:
			return errors.Join(r.takeItems(world, display), ErrOperatorEnded)
		case <-failed(r.plane):
			return failure(r.plane)
		case <-r.account.refused():
			return errors.Join(r.takeItems(world, display), ErrRefused)
		case <-ended:
			return nil
		case <-timedOut:
			return r.conditionsMissed(world)
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrWatchingInterrupted, context.Cause(ctx))
		}
	}
}

// after is time.After, but never for a time of zero.
func after(d time.Duration) <-chan time.Time {
	if d == 0 {
		return nil
	}
	return time.After(d)
}

func (r *runner) takeItems(world *World, display display) error {
	for _, item := range r.queue.take() {
		if item.change == nil {
			display.log(item.source, item.line)
			continue
		}
		for _, notice := range world.Apply(*item.change) {
			if err := display.notify(notice, item.at); err != nil {
				return fmt.Errorf("writing a change: %w", err)
			}
		}
	}
	return nil
}

func (r *runner) conditionsHold(world *World) bool {
	for _, condition := range r.conditions {
		if holds, _ := condition.Holds(world); !holds {
			return false
		}
	}
	return len(r.conditions) > 0
}

// conditionsMissed returns the error that says which conditions do not hold, and what holds
// instead.
func (r *runner) conditionsMissed(world *World) error {
	var missed []string
	for _, condition := range r.conditions {
		if holds, missing := condition.Holds(world); !holds {
			missed = append(missed, fmt.Sprintf("%s (%s)", condition.Text, missing))
		}
	}
	return fmt.Errorf("%w after %v: %s", ErrConditionsMissed, r.Timeout, strings.Join(missed, "; "))
}

func (r *runner) topKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, kind := range r.kinds {
		if kind.Operators {
			kinds = append(kinds, kind.GroupKind())
		}
	}
	return kinds
}

func (r *runner) display() display {
	if r.live == nil {
		return &plainDisplay{plain: Plain{Writer: r.Out, Start: r.start}, logs: r.Err}
	}
	return &liveDisplay{screen: r.live, colors: r.steps.colors, title: r.title(), hint: r.hint(), start: r.start, steps: r.steps}
}

func (r *runner) title() string {
	title := filepath.Base(r.project.ImportPath)
	if len(r.Until) > 0 {
		title += " · until " + strings.Join(r.Until, " and ")
	}
	return title
}

// hint returns what the display suggests while there are no objects.
func (r *runner) hint() string {
	var names []string
	for _, kind := range r.kinds {
		if kind.Operators {
			names = append(names, kind.Kind)
		}
	}
	if len(names) == 0 {
		return "no kinds to show: add one with --watch KIND, or install the operator's with --crds DIR"
	}
	return "no " + strings.Join(names, " or ") + " yet: create one with kubectl or --samples"
}
