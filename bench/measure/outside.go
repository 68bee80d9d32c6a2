// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/outside"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/table"
	"github.com/ctrlkit/ctrlkit/bench/widget"
)

const (
	// noPoll is an interval of polls that does not end while something else is measured.
	noPoll = 24 * time.Hour
	// settled is the time without a request or a reconcile after which an operator of external
	// resources counts as idle: longer than the second after which one comes back whose write was
	// refused.
	settled = 1500 * time.Millisecond
	// recorded is how many intervals of polls are recorded.
	recorded = 4
	// goneLimit bounds the wait for the end of objects: some operators wait before they believe that a
	// resource is gone.
	goneLimit = 3 * time.Minute
)

// An outsideTurn is one operator of external resources in one round.
type outsideTurn struct {
	turn
	system *outside.System
	*population
}

// outside measures an operator whose Widgets stand for resources of an external system.
func (t turn) outside(ctx context.Context) error {
	system, err := outside.Start(t.latency)
	if err != nil {
		return err
	}
	p, err := t.population(ctx)
	if err != nil {
		return errors.Join(err, system.Close())
	}
	defer p.stop()
	o := outsideTurn{turn: t, system: system, population: p}
	for _, phase := range []func(context.Context) error{o.lives, o.many, o.poll} {
		if err == nil {
			err = phase(ctx)
		}
	}
	if n := system.Twice(); n > 0 && err == nil {
		err = fmt.Errorf("%d resources were created more than once", n)
	}
	return errors.Join(err, system.Close())
}

// with runs the operator while do runs.
func (o outsideTurn) with(ctx context.Context, workers int, poll time.Duration, do func(*process.Process) error) error {
	settings := process.Settings{Workers: workers, System: o.system.URL(), Poll: poll, Profiled: o.profiles != ""}
	return o.turn.with(ctx, o.population, settings, func(operator *process.Process, _ process.Stats) error { return do(operator) })
}

// count adds the requests and calls for each of n objects while do runs and until the operator is
// idle, and returns what it did.
func (o outsideTurn) count(ctx context.Context, operator *process.Process, row string, n int, do func() error) (process.Stats, error) {
	before, err := operator.Stats()
	if err != nil {
		return before, err
	}
	calls := o.system.Calls()
	after, err := o.profiled(operator, row, func() error {
		if err := do(); err != nil {
			return err
		}
		_, err := operator.AwaitIdle(ctx, settled)
		return err
	})
	did, called := after.Sub(before), o.system.Calls().Sub(calls)
	o.addRequests(row, did, n)
	o.add(row+callsOf, float64(called.Total())/float64(n))
	o.report("%s of %d: %d writes, %d live reads, %+v, %d conflicts", row, n, did.Writes, did.Gets, called, did.Conflicts)
	return did, err
}

// lives measures the life of objects, with one worker.
func (o outsideTurn) lives(ctx context.Context) error {
	n := o.sizes.burst
	return o.with(ctx, 1, noPoll, func(operator *process.Process) error {
		empty, err := operator.Heap()
		if err != nil {
			return err
		}
		o.base[o.rival.name] = append(o.base[o.rival.name], float64(empty.Heap))
		did, err := o.count(ctx, operator, rowCreate, n, func() error {
			took, err := o.createAtOnce(ctx, n)
			o.add(rowRateOne, float64(n)/took.Seconds())
			return err
		})
		if err != nil {
			return err
		}
		o.add(rowCPUCreate, milliseconds(did.CPU)/float64(n))
		o.add(rowAllocated, float64(did.Allocated)/float64(n)/1000)
		if _, err := o.count(ctx, operator, rowTouched, n, func() error {
			return o.patchAll(ctx, n, `{"metadata":{"annotations":{"example.com/note":"other"}}}`)
		}); err != nil {
			return err
		}
		_, err = o.count(ctx, operator, rowField, n, func() error {
			if err := o.patchAll(ctx, n, `{"spec":{"first":"changed"}}`); err != nil {
				return err
			}
			return o.awaitSystem(ctx, "the changes", func() bool { return o.system.Sizes()["changed"] == n })
		})
		if err != nil {
			return err
		}
		_, err = o.count(ctx, operator, rowEnd, n, func() error { return o.deleteAll(ctx, n) })
		return err
	})
}

// many measures how fast ten workers create objects, and what many of them cost an operator that
// starts.
func (o outsideTurn) many(ctx context.Context) error {
	n := o.objects
	err := o.with(ctx, 10, noPoll, func(operator *process.Process) error {
		calls := o.system.Calls()
		took, err := o.createAtOnce(ctx, n)
		if err != nil {
			return err
		}
		each := float64(o.system.Calls().Sub(calls).Total()) / float64(n)
		bound := 10 / (each * o.latency.Seconds())
		rate := float64(n) / took.Seconds()
		o.add(rowRateTen, rate)
		o.add(rowBound, rate/bound)
		o.report("%d at once, 10 workers: %.1f/s of %.1f/s", n, rate, bound)
		_, err = operator.AwaitIdle(ctx, settled)
		return err
	})
	if err != nil {
		return err
	}
	calls := o.system.Calls()
	return o.with(ctx, 10, noPoll, func(operator *process.Process) error {
		if _, err := operator.Await(ctx, "all objects to be reconciled after a restart", func(s process.Stats) bool { return s.Reconciles >= n }); err != nil {
			return err
		}
		restarted, err := operator.AwaitIdle(ctx, settled)
		if err != nil {
			return err
		}
		o.addRequests(rowRestart, restarted, n)
		o.add(rowRestartCPU, milliseconds(restarted.CPU)/float64(n))
		o.add(rowRestart+callsOf, float64(o.system.Calls().Sub(calls).Total())/float64(n))
		stats, err := operator.Heap()
		if o.profiles != "" {
			err = errors.Join(err, operator.HeapProfile(o.profileOf("heap")))
		}
		each := (float64(stats.Heap) - table.Median(o.base[o.rival.name])) / float64(n) / 1000
		o.add(rowHeap, each)
		o.report("restarted with %d objects: %d writes, %d live reads, CPU %.2f ms and %.1f kB each", n, restarted.Writes, restarted.Gets, milliseconds(restarted.CPU)/float64(n), each)
		return err
	})
}

// poll measures an operator that observes what is up to date, again and again.
func (o outsideTurn) poll(ctx context.Context) error {
	settings := process.Settings{Namespace: o.namespace, Workers: 10, System: o.system.URL(), Poll: o.interval}
	operator, err := o.cluster.run(ctx, o.rival, settings)
	if err != nil {
		return err
	}
	return errors.Join(o.record(ctx, operator), operator.Stop())
}

// record records some intervals of polls, from the third on: in the first, an operator that starts
// observes all objects as fast as it can.
func (o outsideTurn) record(ctx context.Context, operator *process.Process) error {
	if err := pause(ctx, 2*o.interval); err != nil {
		return err
	}
	before, err := operator.Stats()
	if err != nil {
		return err
	}
	polls, since := len(o.system.Polls()), time.Now()
	after, err := o.profiled(operator, "poll", func() error { return pause(ctx, recorded*o.interval) })
	if err != nil {
		return err
	}
	did, times := after.Sub(before), o.system.Polls()[polls:]
	if len(times) == 0 {
		return fmt.Errorf("there was no poll within %s", recorded*o.interval)
	}
	n := float64(len(times))
	o.addRequests(rowPoll, did, len(times))
	o.add(rowPollCPU, float64(did.CPU.Microseconds())/n)
	o.add(rowPollAllocated, float64(did.Allocated)/n/1000)
	tenths := histogram(times, since, o.interval/10, 10*recorded)
	o.add(rowPollHerd, float64(slices.Max(tenths))/(float64(o.objects)/10))
	o.report("%d polls: %d writes, CPU %.0f us and %.1f kB each; in each tenth of an interval: %v",
		len(times), did.Writes, float64(did.CPU.Microseconds())/n, float64(did.Allocated)/n/1000, tenths)
	return nil
}

// last returns the names of the last n Widgets.
func (o outsideTurn) last(n int) []*widget.Widget {
	var all []*widget.Widget
	for i := range n {
		all = append(all, &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: o.namespace, Name: nameOf(o.made - i)}})
	}
	return all
}

// patchAll patches the last n Widgets.
func (o outsideTurn) patchAll(ctx context.Context, n int, patch string) error {
	for _, w := range o.last(n) {
		if err := o.turn.user.Patch(ctx, w, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			return fmt.Errorf("changing a Widget: %w", err)
		}
	}
	return nil
}

// deleteAll deletes the last n Widgets, and returns when they are gone, and their resources as
// well.
func (o outsideTurn) deleteAll(ctx context.Context, n int) error {
	for _, w := range o.last(n) {
		if err := o.turn.user.Delete(ctx, w); err != nil {
			return fmt.Errorf("deleting a Widget: %w", err)
		}
	}
	for _, w := range o.last(n) {
		err := o.awaitSystem(ctx, "the end of "+w.Name, func() bool {
			return apierrors.IsNotFound(o.turn.user.Get(ctx, client.ObjectKeyFromObject(w), w))
		})
		if err != nil {
			return err
		}
	}
	if sizes := o.system.Sizes(); len(sizes) > 0 {
		return fmt.Errorf("resources are left: %v", sizes)
	}
	return nil
}

// awaitSystem returns when done returns true.
func (o outsideTurn) awaitSystem(ctx context.Context, what string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, goneLimit)
	defer cancel()
	for !done() {
		if err := pause(ctx, gap); err != nil {
			return fmt.Errorf("waiting for %s: %w", what, err)
		}
	}
	return nil
}

// histogram counts times in intervals that begin at a time.
func histogram(times []time.Time, since time.Time, interval time.Duration, n int) []int {
	counts := make([]int, n)
	for _, t := range times {
		if i := int(t.Sub(since) / interval); !t.Before(since) && i < n {
			counts[i]++
		}
	}
	return counts
}
