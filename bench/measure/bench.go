// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/table"
	"github.com/ctrlkit/ctrlkit/bench/widget"
)

const (
	// quiet is the time without a request or a reconcile after which an operator counts as idle:
	// longer than the latency of watches, and shorter than any timer of the operators.
	quiet = 250 * time.Millisecond
	// gap is between two objects that are created one after the other, so that the events of one
	// are not reconciled while the next is timed.
	gap = 40 * time.Millisecond
	// resync is the shortest that informers have.
	resync = time.Second
	// window is the time for which resyncs are measured.
	window = 3 * time.Second
	// startLimit bounds the wait for the first reconcile of all objects: operators that write in
	// each need longer for all than a resync leaves them, and do in it what they do in a resync.
	startLimit = 3 * time.Second
)

// A bench measures rivals in turns.
type bench struct {
	*cluster
	sizes
	table    *table.Table
	progress io.Writer
	profiles string                 // directory for CPU profiles, none if empty
	base     map[string][]float64   // heaps of operators without objects, by rival
	many     map[string]*population // the namespaces that fill over the rounds, by rival
	configs  cachedObjects
}

// A turn is one rival in one round.
type turn struct {
	*bench
	rival rival
	round int
}

func (b *bench) run(ctx context.Context, selected []rival) error {
	defer func() {
		for _, p := range b.many {
			p.stop()
		}
	}()
	phases := []func(turn, context.Context) error{turn.create, turn.resyncs, turn.handlers}
	if b.sizes.outside {
		phases = []func(turn, context.Context) error{turn.outside}
	}
	for _, phase := range phases {
		for round := range b.rounds {
			for i := range selected {
				r := selected[(i+round)%len(selected)] // so that none is always the first
				t := turn{bench: b, rival: r, round: round}
				if err := phase(t, ctx); err != nil {
					return fmt.Errorf("%s, round %d: %w", r.name, round+1, err)
				}
				if err := b.plane.Err(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (t turn) report(format string, args ...any) {
	fmt.Fprintf(t.progress, "round %d of %d: %-18s %s\n", t.round+1, t.rounds, t.rival.name, fmt.Sprintf(format, args...))
}

func (t turn) add(row string, value float64) { t.table.Add(row, t.rival.name, t.round, value) }

// population returns an empty namespace, which is watched.
func (t turn) population(ctx context.Context) (*population, error) {
	namespace, err := t.namespace(ctx, t.rival.policy)
	if err != nil {
		return nil, err
	}
	return watchPopulation(ctx, t.user, namespace)
}

// with runs the rival in a namespace while do runs. The operator is idle when do begins.
func (t turn) with(ctx context.Context, p *population, settings process.Settings, do func(*process.Process, process.Stats) error) error {
	settings.Namespace = p.namespace
	operator, err := t.cluster.run(ctx, t.rival, settings)
	if err != nil {
		return err
	}
	stats, err := operator.AwaitIdle(ctx, quiet)
	if err == nil {
		err = do(operator, stats)
	}
	return errors.Join(err, operator.Stop())
}

// create is the part of a round in which objects are created.
func (t turn) create(ctx context.Context) error {
	if err := t.single(ctx); err != nil {
		return err
	}
	one, err := t.population(ctx)
	if err != nil {
		return err
	}
	defer one.stop()
	errorsOne, err := t.burst(ctx, one, 1)
	if err != nil {
		return err
	}
	ten, err := t.roomy(ctx)
	if err != nil {
		return err
	}
	if ten != t.many[t.rival.name] {
		defer ten.stop()
	}
	errorsTen, err := t.burst(ctx, ten, 10)
	t.add(rowErrors, 100*float64(errorsOne+errorsTen)/float64(2*t.sizes.burst))
	return err
}

// roomy returns the population that fills over the rounds, or an empty one if a burst would make it
// larger than it should become.
func (t turn) roomy(ctx context.Context) (*population, error) {
	p := t.many[t.rival.name]
	if p == nil {
		var err error
		if p, err = t.population(ctx); err != nil {
			return nil, err
		}
		t.many[t.rival.name] = p
	}
	if p.made+t.sizes.burst <= t.objects {
		return p, nil
	}
	return t.population(ctx)
}

// single measures one object after the other, with one worker: the requests of the first, in all
// phases of its life, then latencies.
func (t turn) single(ctx context.Context) error {
	p, err := t.population(ctx)
	if err != nil {
		return err
	}
	defer p.stop()
	var first string
	err = t.with(ctx, p, process.Settings{Workers: 1}, func(operator *process.Process, _ process.Stats) error {
		empty, err := operator.Heap()
		if err != nil {
			return err
		}
		t.base[t.rival.name] = append(t.base[t.rival.name], float64(empty.Heap))
		first, err = t.requests(ctx, operator, p)
		return err
	})
	if err != nil {
		return err
	}
	return t.with(ctx, p, process.Settings{Workers: 1}, func(*process.Process, process.Stats) error {
		if err := p.check(ctx, first); err != nil { // nor does a restart change anything
			return err
		}
		return t.latencies(ctx, p)
	})
}

func (t turn) addRequests(row string, stats process.Stats, per int) {
	t.add(row+writes, float64(stats.Writes)/float64(per))
	t.add(row+gets, float64(stats.Gets)/float64(per))
}

// requests counts the requests for one Widget, and returns its name.
func (t turn) requests(ctx context.Context, operator *process.Process, p *population) (name string, err error) {
	count := func(row string, change func() error) error {
		before, err := operator.Stats()
		if err != nil {
			return err
		}
		if err := change(); err != nil {
			return err
		}
		if err := t.converge(ctx, p, name); err != nil {
			return err
		}
		after, err := operator.AwaitIdle(ctx, quiet)
		if err != nil {
			return err
		}
		did := after.Sub(before)
		t.addRequests(row, did, 1)
		t.report("%s: %d writes, %d live reads", row, did.Writes, did.Gets)
		return nil
	}
	err = count(rowCreate, func() (err error) {
		name, _, err = p.create(ctx)
		return err
	})
	if err != nil || t.rival.creates {
		return name, err
	}
	in := metav1.ObjectMeta{Namespace: p.namespace, Name: name}
	merge := func(obj client.Object, patch string) error {
		return t.user.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	err = count(rowField, func() error { return merge(&widget.Widget{ObjectMeta: in}, `{"spec":{"first":"changed"}}`) })
	if err != nil {
		return name, err
	}
	err = count(rowDeleted, func() error { _, err := p.repair(ctx, name); return err })
	if err != nil {
		return name, err
	}
	return name, count(rowEdited, func() error { return merge(&corev1.ConfigMap{ObjectMeta: in}, `{"data":{"text":"edited"}}`) })
}

// converge returns when a Widget has converged.
func (t turn) converge(ctx context.Context, p *population, name string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		err := p.check(ctx, name)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(gap):
		case <-ctx.Done():
			return fmt.Errorf("the Widget does not converge: %w", err)
		}
	}
}

// latencies times objects that are created, and children that are deleted, one after the other.
func (t turn) latencies(ctx context.Context, p *population) error {
	var ready, repaired []float64
	var names []string
	for range t.serial {
		name, took, err := p.create(ctx)
		if err != nil {
			return err
		}
		names, ready = append(names, name), append(ready, milliseconds(took))
		if err := pause(ctx, gap); err != nil {
			return err
		}
	}
	t.add(rowReady, table.Median(ready))
	t.report("create to Ready %.1f ms", table.Median(ready))
	if t.rival.creates {
		return nil
	}
	before, err := serverCPU()
	if err != nil {
		return err
	}
	for i := range t.repairs {
		took, err := p.repair(ctx, names[i%len(names)])
		if err != nil {
			return err
		}
		repaired = append(repaired, milliseconds(took))
		if err := pause(ctx, gap); err != nil {
			return err
		}
	}
	after, err := serverCPU()
	if err != nil {
		return err
	}
	t.add(rowServerRepair, milliseconds(after-before)/float64(t.repairs))
	t.add(rowRepair, table.Median(repaired))
	t.add(rowRepairTail, table.Quantile(repaired, 0.99))
	t.report("repair p50 %.1f ms, p99 %.1f ms", table.Median(repaired), table.Quantile(repaired, 0.99))
	return nil
}

// burst creates many Widgets at once, and returns how many reconciles ended in an error.
func (t turn) burst(ctx context.Context, p *population, workers int) (failed int, err error) {
	n := t.sizes.burst
	err = t.with(ctx, p, process.Settings{Workers: workers}, func(operator *process.Process, before process.Stats) error {
		var took, idle time.Duration
		servers, err := serverCPU()
		if err != nil {
			return err
		}
		after, err := t.profiled(operator, fmt.Sprintf("create-%d", workers), func() (err error) {
			begin := time.Now()
			if took, err = p.createAtOnce(ctx, n); err != nil {
				return err
			}
			stats, err := operator.AwaitIdle(ctx, quiet) // what the events of the last writes cause belongs to it
			idle = time.Since(begin) - stats.Quiet
			return err
		})
		if err != nil {
			return err
		}
		did := after.Sub(before)
		failed = did.Errors
		used, err := serverCPU()
		if err != nil {
			return err
		}
		used -= servers
		rate := float64(n) / took.Seconds()
		t.report("%d at once, %2d workers: %.1f/s, idle after %.2f s, CPU %.2f ms each, of the servers %.2f, %d conflicts, %d errors",
			n, workers, rate, idle.Seconds(), milliseconds(did.CPU)/float64(n), milliseconds(used)/float64(n), did.Conflicts, did.Errors)
		if workers == 1 {
			t.add(rowRateOne, rate)
			t.add(rowIdleOne, idle.Seconds())
			t.add(rowCPUCreate, milliseconds(did.CPU)/float64(n))
			t.add(rowAllocated, float64(did.Allocated)/float64(n)/1000)
		} else {
			t.add(rowRateTen, rate)
			t.add(rowIdleTen, idle.Seconds())
			t.add(rowServerCreate, milliseconds(used)/float64(n))
		}
		return t.converge(ctx, p, nameOf(p.made))
	})
	return failed, err
}

// resyncs is the part of a round in which many objects exist: the heap for them, and what a resync
// costs.
func (t turn) resyncs(ctx context.Context) error {
	p := t.many[t.rival.name]
	if missing := t.objects - p.made; missing > 0 {
		t.report("creating %d more objects", missing)
		err := t.with(ctx, p, process.Settings{Workers: 10}, func(*process.Process, process.Stats) error {
			_, err := p.createAtOnce(ctx, missing)
			return err
		})
		if err != nil {
			return err
		}
	}
	// Idle, and without resyncs: what waits in queues is no object that has converged.
	err := t.with(ctx, p, process.Settings{Workers: 10, Profiled: t.profiles != ""}, func(operator *process.Process, _ process.Stats) error {
		all := func(s process.Stats) bool { return s.Reconciles >= p.made }
		if _, err := operator.Await(ctx, "all objects to be reconciled after a restart", all); err != nil {
			return err
		}
		restarted, err := operator.AwaitIdle(ctx, quiet)
		if err != nil {
			return err
		}
		t.addRequests(rowRestart, restarted, p.made)
		stats, err := operator.Heap()
		if t.profiles != "" {
			err = errors.Join(err, operator.HeapProfile(t.profileOf("heap")))
		}
		each := (float64(stats.Heap) - table.Median(t.base[t.rival.name])) / float64(p.made) / 1000
		t.add(rowHeap, each)
		t.report("restarted with %d objects: %d writes, %d live reads, %.1f kB each", p.made, restarted.Writes, restarted.Gets, each)
		return err
	})
	if err != nil {
		return err
	}
	operator, err := t.cluster.run(ctx, t.rival, process.Settings{Namespace: p.namespace, Workers: 1, Resync: resync})
	if err != nil {
		return err
	}
	return errors.Join(t.storm(ctx, operator, p.made), operator.Stop())
}

// storm measures what an operator costs whose objects are resynced all the time.
func (t turn) storm(ctx context.Context, operator *process.Process, objects int) error {
	limit := time.Now().Add(startLimit)
	before, err := operator.Await(ctx, "all objects to be reconciled", func(s process.Stats) bool {
		return s.Reconciles >= objects || time.Now().After(limit)
	})
	if err != nil {
		return err
	}
	after, err := t.profiled(operator, "resync", func() error { return pause(ctx, window) })
	if err != nil {
		return err
	}
	did := after.Sub(before)
	if did.Reconciles == 0 {
		return fmt.Errorf("there was no resync within %s", window)
	}
	each := float64(did.CPU.Microseconds()) / float64(did.Reconciles)
	t.add(rowCPUResync, each)
	t.addRequests(rowResync, did, did.Reconciles)
	t.report("%d reconciles in resyncs, CPU %.0f us each, %d writes, %d live reads", did.Reconciles, each, did.Writes, did.Gets)
	return nil
}

// profiled returns the stats of an operator after do, and keeps the CPU profile of that time, and the
// profile of what the operator has allocated since it started, if profiles are wanted.
func (t turn) profiled(operator *process.Process, what string, do func() error) (process.Stats, error) {
	if t.profiles == "" {
		if err := do(); err != nil {
			return process.Stats{}, err
		}
		return operator.Stats()
	}
	if err := errors.Join(operator.Profile(t.profileOf(what)), do()); err != nil {
		return process.Stats{}, err
	}
	stats, err := operator.Stats()
	return stats, errors.Join(err, operator.EndProfile(), operator.HeapProfile(t.profileOf("heap-after-"+what)))
}

// profileOf returns the file for a profile.
func (t turn) profileOf(what string) string {
	return filepath.Join(t.profiles, fmt.Sprintf("%s-%s-%d.pprof", t.rival.name, what, t.round+1))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
