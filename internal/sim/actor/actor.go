// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package actor is what else changes the world of a simulation beside the operator and the script:
// other clients of the cluster, and outages of external systems.
//
// What an actor does happens at once, in the driver, and goes straight to the API server: no fault
// strikes it, and no oracle judges it. What it takes away or breaks for a time comes back before
// the script continues, so that the world can be compared with that of a run without faults.
package actor

import (
	"encoding/json"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
)

// How long things last, in virtual time.
const (
	occupiedTime  = 10 * time.Minute // how long a name is occupied
	fightRounds   = 3                // how often a write is undone
	fightInterval = time.Second      // from a write to its undoing
)

// Time is the part of the schedule that actors need.
type Time interface {
	// After does something later.
	After(d time.Duration, do func())

	// WhenIdle does something when everything is idle, before the script continues.
	WhenIdle(do func())

	// SlowDown makes idleness take longer to be sure of, after something has failed for so long.
	SlowDown(failed time.Duration)

	// Quiet returns how long nothing may have happened until everything is idle.
	Quiet() time.Duration
}

// Notes is what actors report for those who judge the operator.
type Notes interface {
	// Disturbed is called when others do something to an object with which its finalizer can't hold
	// what it promises.
	Disturbed(uid types.UID)

	// StatusWiped is called when others remove the status of an object.
	StatusWiped(uid types.UID)

	// Stuck is called before something comes back without which objects can't continue. blocked
	// are those that wait for an external system.
	Stuck(cause string, blocked []external.Blocked)

	// Explains reports whether an object has a condition that says why it can't continue, or can't
	// be expected to have one.
	Explains(uid types.UID) bool
}

// Actors are all actors of one run.
type Actors struct {
	*Outages

	cluster     *cluster.Cluster
	time        Time
	notes       Notes
	trace       *trace.Trace
	systems     map[string]external.System
	mutations   map[string]bool     // objects whose writes admission changes
	stored      []string            // those of them that the operator has written since Admit
	fights      map[string]*fight   // by object
	recreations map[string]func()   // create objects again when their names are free
	absent      map[string]*absence // objects that come back when everything is idle
	orphans     map[types.UID]*orphan
}

// New returns the actors of one run.
func New(c *cluster.Cluster, systems map[string]external.System, t Time, n Notes, tr *trace.Trace) *Actors {
	return &Actors{
		Outages: &Outages{time: t, notes: n, trace: tr},
		cluster: c, time: t, notes: n, trace: tr, systems: systems,
		mutations: map[string]bool{}, fights: map[string]*fight{}, recreations: map[string]func(){},
		absent: map[string]*absence{}, orphans: map[types.UID]*orphan{},
	}
}

// ask sends a request of another client. That it does not work is recorded and no more: the object
// may be gone.
func (a *Actors) ask(method, path, contentType string, body any) {
	var data []byte
	if body != nil {
		var err error
		if data, err = json.Marshal(body); err != nil {
			a.trace.Add("other", "write", "encoding: "+err.Error())
			return
		}
	}
	_, _ = a.cluster.Ask("other", method, path, contentType, data) //nolint:errcheck // the trace has it
}

func (a *Actors) patch(path string, metadata map[string]any) {
	a.ask(http.MethodPatch, path, "application/merge-patch+json", map[string]any{"metadata": metadata})
}

func (a *Actors) create(collection string, content any) {
	a.ask(http.MethodPost, collection, "application/json", content)
}

func (a *Actors) delete(path string) {
	a.ask(http.MethodDelete, path, "application/json", map[string]any{"propagationPolicy": "Background"})
}

// whenIdle heals something when everything is idle.
func whenIdle(t Time, tr *trace.Trace, name string, do func()) {
	t.WhenIdle(func() {
		tr.Add("sim", "heal", name)
		do()
	})
}

// Touch changes an annotation of the object of a request, so that its resource version is another.
// The annotation is removed when everything is idle.
func (a *Actors) Touch(r *apiserver.Request) {
	target, err := a.cluster.LookUp(cluster.TargetOf(r))
	if err != nil {
		return
	}
	touched := func(value any) map[string]any {
		return map[string]any{"annotations": map[string]any{cluster.Marks + "touched": value}}
	}
	a.patch(target.Path, touched("true"))
	whenIdle(a.time, a.trace, "what touched an object is taken away", func() { a.patch(target.Path, touched(nil)) })
}

// DeleteTarget deletes the object of a request.
func (a *Actors) DeleteTarget(r *apiserver.Request) {
	target, err := a.cluster.LookUp(cluster.TargetOf(r))
	if err != nil {
		return
	}
	a.delete(target.Path)
}

// MutateWritesOf makes admission change the object of a request: from now on, what is stored is not
// what was sent. If the server generates the name, it changes all objects with that prefix.
func (a *Actors) MutateWritesOf(r *apiserver.Request) { a.mutations[cluster.TargetOf(r)] = true }

// Admit does what admission does with the objects of a write.
func (a *Actors) Admit(r *apiserver.Request) {
	stored := a.stored
	a.stored = nil
	if r.Subresource != "" {
		return
	}
	for _, of := range stored {
		target, err := a.cluster.LookUp(of)
		mutated := cluster.Marks + "mutated"
		if err != nil || target.GetAnnotations()[mutated] != "" {
			continue
		}
		a.patch(target.Path, map[string]any{"annotations": map[string]any{mutated: "true"}, "labels": map[string]any{mutated: "true"}})
	}
}

// Changed records a change of the cluster for those actors that wait for one. It sends no requests:
// the server has not finished the one that has caused the change.
func (a *Actors) Changed(c apiserver.Change) {
	of := cluster.ObjectName(c.Resource, c.Namespace, c.Name)
	if create, ok := a.recreations[of]; ok && c.Type == "DELETED" {
		delete(a.recreations, of)
		a.time.After(0, create)
	}
	if !cluster.IsOperator(c.Actor) || c.New == nil {
		return
	}
	if a.mutations[cluster.ObjectName(c.Resource, c.Namespace, cluster.CanonicalName(c.Name, c.New))] {
		a.stored = append(a.stored, of)
	}
	if left, ok := a.orphans[c.UID]; ok {
		left.used = true
	}
}

// WipeStatus removes the status of an object.
func (a *Actors) WipeStatus(of string) {
	target, err := a.cluster.LookUp(of)
	if err != nil || target.Object["status"] == nil {
		return
	}
	delete(target.Object, "status")
	a.notes.StatusWiped(target.GetUID())
	a.ask(http.MethodPut, target.Path+"/status", "application/json", target.Object)
}

// StripAnnotations removes the annotations and labels that no user of the object has written.
func (a *Actors) StripAnnotations(of string) {
	target, err := a.cluster.LookUp(of)
	if err != nil {
		return
	}
	a.patch(target.Path, map[string]any{
		"annotations": nulls(a.cluster.Added(of, "annotations", target.GetAnnotations())),
		"labels":      nulls(a.cluster.Added(of, "labels", target.GetLabels())),
	})
}

// nulls is a merge patch that removes keys.
func nulls(keys []string) map[string]any {
	m := map[string]any{}
	for _, key := range keys {
		m[key] = nil
	}
	return m
}

// Drift changes the resource that a call was about, as another client of its system would.
func (a *Actors) Drift(call external.Call) {
	system, ok := a.systems[call.System]
	if !ok {
		return
	}
	if id, ok := system.Drift(call.Owner); ok {
		a.trace.Add("other", "call", call.System+" update "+id)
	}
}
