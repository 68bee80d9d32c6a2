// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
)

// A World is what a script acts in: the cluster and the external systems of one run.
//
// Every method waits until it is done. A failure ends the run, as a mistake of the script, so that
// scripts need no error handling.
type World struct {
	member
	run     *run
	clients int // that Config has made
	detours int

	beginning bool // the script ends when it changes an object
}

// scriptError ends a script.
type scriptError struct{ err error }

func (w *World) fail(err error) {
	panic(scriptError{err})
}

// play plays the script of the workload, from the first object to the proof that the operator is
// idle. It does not panic, whatever the script does.
func (w *World) play() {
	defer func() {
		switch e := recover().(type) {
		case nil, endOfRun:
			return
		case scriptError:
			if !errors.Is(e.err, errAborted) {
				w.run.judge.Report(oracle.ScriptRuns, judge.WithHint(e.err.Error()))
			}
		default:
			w.run.judge.Report(oracle.ScriptRuns, fmt.Sprintf("panic: %v\n%s", e, debug.Stack()))
		}
		w.run.abort()
	}()
	w.must("prepare", w.run.prepare)
	if w.run.played != nil {
		w.playCourse()
		return
	}
	if script := w.run.workload.Script; script != nil { // with a recording it may be
		script(w)
	}
	w.Settle() // a script need not end with it
	w.must("look at what was recorded", func() error { w.run.judgeRecorded(); return nil })
	// Other runs are compared up to here. The rest is the same in all of them.
	w.must("note the end", func() error { w.run.ended = len(w.run.checkpoints) - 1; return nil })
	w.proveIdle()
	w.must("look at the caches", func() error { w.run.judge.Idle(w.run.processes.idle(0)); return nil })
}

// endOfRun ends the script of a run that joins an earlier one.
type endOfRun struct{}

// endOfBeginning ends a script of which only the beginning is played.
type endOfBeginning struct{}

// endBeginning ends the script if only its beginning is played, which changes no object.
func (w *World) endBeginning() {
	if w.beginning {
		panic(endOfBeginning{})
	}
}

// playCourse plays the beginning of the script, and then the transition.
func (w *World) playCourse() {
	w.playBeginning()
	w.Settle()
	if p := w.run.played; p.changes() {
		w.apply("change "+p.change.Name, p.change.Before, p.change.Changed)
		w.Settle()
		w.apply("change it back", p.change.Changed, p.change.Before)
		w.Settle()
	}
	w.must("note the end", func() error {
		w.run.ended, w.run.played.failing = len(w.run.checkpoints)-1, w.run.processes.failing()
		return nil
	})
}

func (w *World) playBeginning() {
	if w.run.workload.Script == nil {
		return
	}
	w.beginning = true
	defer func() {
		w.beginning = false
		if r := recover(); r != nil && r != any(endOfBeginning{}) {
			panic(r)
		}
	}()
	w.run.workload.Script(w)
}

// apply changes an object as "kubectl apply" does, from what was applied before.
func (w *World) apply(text string, from, to *unstructured.Unstructured) {
	w.must(text, func() error {
		collection, _, err := w.run.encode(from)
		if err != nil {
			return err
		}
		path := collection + "/" + from.GetName()
		current, err := w.run.cluster.Ask("user", http.MethodGet, path, "", nil)
		if err != nil {
			return err
		}
		patch, err := patchOf(from, to, current)
		if err != nil {
			return err
		}
		_, err = w.run.cluster.Ask("user", http.MethodPatch, path, "application/merge-patch+json", patch)
		return w.run.played.unlessRefused(err)
	})
}

// try lets the driver do something at its turn, and waits for it.
func (w *World) try(key string, do func() error) error {
	err := w.run.do(key, func() error {
		if w.run.aborted {
			return errAborted
		}
		return do()
	})
	if errors.Is(err, errAborted) {
		w.fail(errAborted)
	}
	return err
}

// must is try for what has to work.
func (w *World) must(key string, do func() error) {
	if err := w.try(key, do); err != nil {
		w.fail(fmt.Errorf("%s: %w", key, err))
	}
}

// Create creates objects as a user.
func (w *World) Create(objs ...client.Object) {
	for _, obj := range objs {
		w.must("create "+w.run.describeObject(obj), func() error { return w.run.createObject(obj) })
	}
}

// Delete deletes objects as a user, in the way that kubectl does: in the background. Objects that
// are gone already are no mistake.
func (w *World) Delete(objs ...client.Object) {
	w.endBeginning()
	for _, obj := range objs {
		w.must("delete "+w.run.describeObject(obj), func() error {
			w.run.injector.Deletion()
			w.run.actors.KeepAway(w.run.nameInPlans(obj))
			_, err := w.run.askAbout("user", http.MethodDelete, obj, "")
			return client.IgnoreNotFound(err)
		})
	}
}

// Settle waits until the operator is idle: nothing was written for the time that the workload says.
// Faults that hold back or break something for a time are healed before Settle returns. The world
// is compared there with that of the run without faults.
func (w *World) Settle() {
	w.becomeIdle()
	retries := false
	w.must("look for failures", func() error {
		retries = w.run.awaitsRetry()
		return nil
	})
	if retries { // once: an operator that fails each time is as idle as it gets
		w.Sleep(backoffCap)
		w.becomeIdle()
	}
	proves, joins := false, false
	w.must("look at the world", func() error {
		w.run.addCheckpoint()
		w.run.judge.Idle(w.run.processes.idle(len(w.run.checkpoints)))
		proves = w.run.injector.Checkpoint(len(w.run.checkpoints))
		joins = !proves && w.run.joint.join()
		return nil
	})
	switch {
	case joins:
		panic(endOfRun{})
	case proves:
		w.proveIdle()
	}
}

// becomeIdle waits until the operator is idle, without a checkpoint.
func (w *World) becomeIdle() {
	patience := w.run.workload.patience()
	done := make(chan error, 1)
	w.must("settle", func() error {
		w.run.schedule.NotifyIdle(patience, func(err error) {
			if errors.Is(err, schedule.ErrNotIdle) && w.run.played.excuses(w.run.processes.failing()) {
				err = nil // it tries again and again, as it should
			}
			if errors.Is(err, schedule.ErrNotIdle) {
				w.run.judge.Report(oracle.BecomesIdle, fmt.Sprintf("the operator has not become idle within %s", patience))
				w.run.abort()
				err = errAborted
			}
			done <- err
		})
		return nil
	})
	if err := <-done; err != nil {
		w.fail(err)
	}
}

// proveIdle resyncs and restarts the idle operator, which must not cause anything.
func (w *World) proveIdle() {
	// Faults are suspended meanwhile: they would give the operator something to do.
	defer func() {
		w.run.judge.Prove("")
		w.run.injector.Resume()
		w.run.players.Resume()
	}()
	w.must("resync", func() error {
		w.run.judge.Prove("a resync")
		w.run.injector.Suspend()
		w.run.players.Suspend()
		w.run.schedule.Active()
		w.run.trace.Add("sim", "idle", "resync: all watches expire")
		w.run.watches.expireAll()
		return nil
	})
	w.becomeIdle()
	w.must("restart", func() error {
		w.run.judge.Prove("a restart")
		w.run.schedule.Active()
		w.run.processes.restartAll()
		return nil
	})
	w.becomeIdle()
}

// Sleep lets virtual time pass.
func (w *World) Sleep(d time.Duration) {
	time.Sleep(d)
	// A turn of its own orders what the script does next after what the driver has done meanwhile:
	// both use the fakes of the run.
	w.must("wake", func() error { return nil })
}

// SleepUntil lets virtual time pass until so long after the beginning of the run, which is at
// midnight UTC of the first of January 2000: for operators that do something at certain times. It
// is a mistake of the script to wait for what is past.
func (w *World) SleepUntil(sinceStart time.Duration) {
	d := time.Until(w.run.trace.Start.Add(sinceStart))
	if d < 0 {
		w.fail(fmt.Errorf("sleeping until %s: that was %s ago, leave more time", sinceStart, -d))
	}
	w.Sleep(d)
}

// Log writes a line into the trace.
func (w *World) Log(text string) { w.run.trace.Add("user", "script", text) }

// Resources returns what is in the inventory of an external system, ordered by id.
func (w *World) Resources(system string) []Resource {
	var list []Resource
	w.lookInto("look into "+system, system, func(s *inventory) {
		for _, e := range s.sorted() {
			list = append(list, e.clone())
		}
	})
	return list
}

// RemoveResource removes a resource from the inventory of an external system, as another client of
// that system would. To create it again counts as no duplicate. A resource that is gone already is
// no mistake.
func (w *World) RemoveResource(system, id string) {
	w.lookInto("remove "+id+" from "+system, system, func(s *inventory) {
		w.run.trace.Add("user", "call", system+" remove "+id)
		s.remove(id)
	})
}

func (w *World) lookInto(key, system string, do func(s *inventory)) {
	w.must(key, func() error {
		s, ok := w.run.externals[system]
		if !ok {
			return fmt.Errorf("the workload has no external system %q", system)
		}
		do(s)
		return nil
	})
}

// Config returns a configuration with which the script can act through any client, as a user. Faults
// do not strike at what it requests.
func (w *World) Config() *rest.Config {
	w.clients++
	p := newProcess(w.run, fmt.Sprintf("user-%d", w.clients), func(error) {}, nil)
	p.user = true
	config := p.Config()
	config.UserAgent = "user"
	return config
}
