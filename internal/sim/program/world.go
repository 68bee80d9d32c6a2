// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"github.com/ctrlkit/ctrlkit/internal/sim/actor"
	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// A world is the cluster of a run, with those who change it and those who judge. One thing happens at
// a time: who has the turn of the cluster is what the driver is in virtual time, and uses the fields.
type world struct {
	turn  func(do func(*apiserver.Server)) // lets something happen at once
	judge *judge.Judge
	later *later

	// What follows is nil until the cluster has started.
	cluster  *cluster.Cluster
	actors   *actor.Actors
	injector *inject.Injector
}

// begin takes over a cluster that has started. Catalog may be nil.
func (w *world) begin(turn func(do func(*apiserver.Server)), p fault.Plan, watches inject.Watches, t *trace, catalog *inject.Catalog) {
	w.turn = turn
	active := func() {} // what is new in the cluster counts, and no write that fails again
	turn(func(server *apiserver.Server) {
		w.cluster = cluster.New(server, t.Trace, active)
		w.actors = actor.New(w.cluster, nil, w.later, w.judge, t.Trace)
		w.injector = inject.New(inject.Options{
			Plan: p, Cluster: w.cluster, Actors: w.actors, Judge: w.judge, Watches: watches, Time: w.later, Active: active, Trace: t.Trace, Catalog: catalog,
		})
	})
}

// do lets something happen at once.
func (w *world) do(do func()) { w.turn(func(*apiserver.Server) { do() }) }

// see calls the oracles.
func (w *world) see(do func(*judge.Judge)) { w.do(func() { do(w.judge) }) }

// changed takes a change of the cluster. It is called by what has the turn.
func (w *world) changed(c apiserver.Change) {
	if w.cluster == nil { // it is starting
		w.judge.Changed(c)
		return
	}
	w.cluster.Changed(c)
	w.judge.Changed(c)
	w.actors.Changed(c)
}
