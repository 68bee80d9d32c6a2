// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/internal/trace"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	pods       = "/api/v1/namespaces/default/pods"
)

// world is a cluster with actors, in a bubble. It records what they report.
type world struct {
	*Actors
	t     *testing.T
	notes []string
	later []timer
	idle  []func()
	uids  map[types.UID]string // how the reports name objects
	first map[string]types.UID // the UIDs that objects had at first

	silent bool // no object has a condition that says why it can't continue
}

// inWorld runs a test in a bubble, in a world in which a user has created a ConfigMap and a Pod.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, uids: map[types.UID]string{}, first: map[string]types.UID{}}
		tr := trace.New()
		c := cluster.New(apiserver.New(apiserver.Options{Now: time.Now, Seed: 1}), tr, func() {})
		w.Actors = New(c, map[string]external.System{"buckets": &system{}}, (*clock)(w), (*reports)(w), tr)
		c.Server.OnChange(func(change apiserver.Change) {
			of := cluster.ObjectName(change.Resource, change.Namespace, change.Name)
			w.uids[change.UID] = of
			if _, known := w.first[of]; !known {
				w.first[of] = change.UID
			}
			c.Changed(change)
			w.Changed(change)
		})
		w.ask("user", "POST", configMaps, `{"metadata":{"name":"x","annotations":{"own":"1"},"labels":{"own":"1"}},"data":{"a":"1"}}`)
		w.ask("user", "POST", pods, `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		test(w)
	})
}

// clock is the schedule of a world, in which virtual time passes.
type clock world

type timer struct {
	at time.Time
	do func()
}

func (c *clock) After(d time.Duration, do func()) {
	c.later = append(c.later, timer{time.Now().Add(d), do})
}
func (c *clock) WhenIdle(do func())   { c.idle = append(c.idle, do) }
func (c *clock) Quiet() time.Duration { return time.Minute }
func (c *clock) SlowDown(failed time.Duration) {
	c.notes = append(c.notes, fmt.Sprintf("slow down by %s", failed))
}

// reports are what actors report for the judge.
type reports world

func (r *reports) Disturbed(uid types.UID) { r.notes = append(r.notes, "disturbed "+r.uids[uid]) }
func (r *reports) StatusWiped(uid types.UID) {
	r.notes = append(r.notes, "status wiped of "+r.uids[uid])
}
func (r *reports) Explains(types.UID) bool { return !r.silent }
func (r *reports) Stuck(cause string, blocked []external.Blocked) {
	r.notes = append(r.notes, fmt.Sprintf("stuck: %s, blocked %v", cause, blocked))
}

// system is an external system with one resource, of the object with UID 1.
type system struct{ drifted int }

func (s *system) Inventory() []external.Resource { return nil }
func (s *system) Created(types.UID) int          { return 0 }
func (s *system) MintsIDs() bool                 { return false }
func (s *system) Drift(owner types.UID) (id string, ok bool) {
	if owner != "1" && owner != "" {
		return "", false
	}
	s.drifted++
	return "b1", true
}

// pass lets time pass, and does what is due until then.
func (w *world) pass(d time.Duration) {
	end := time.Now().Add(d)
	for {
		slices.SortStableFunc(w.later, func(a, b timer) int { return a.at.Compare(b.at) })
		if len(w.later) == 0 || w.later[0].at.After(end) {
			break
		}
		next := w.later[0]
		w.later = w.later[1:]
		time.Sleep(time.Until(next.at))
		next.do()
	}
	time.Sleep(time.Until(end))
}

// settle lets everything become idle, which heals what waits for it.
func (w *world) settle() {
	idle := w.idle
	w.idle = nil
	for _, do := range idle {
		do()
	}
	w.pass(0)
}

// ask sends a request of a client, which must succeed.
func (w *world) ask(actor, method, path, body string) {
	w.t.Helper()
	if _, err := w.cluster.Ask(actor, method, path, contentType(method), []byte(body)); err != nil {
		w.t.Fatalf("%s %s: %v", method, path, err)
	}
}

func contentType(method string) string {
	if method == "PATCH" {
		return "application/merge-patch+json"
	}
	return "application/json"
}

// request returns a request of the operator.
func (w *world) request(method, path, body string) *apiserver.Request {
	w.t.Helper()
	r, err := apiserver.NewRequest(method, path, contentType(method), []byte(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Actor = "operator"
	return r
}

// write lets the operator write, past admission and the fights, and returns the code of the answer.
func (w *world) write(method, path, body string) int {
	w.t.Helper()
	r := w.request(method, path, body)
	response := w.cluster.Execute(r, "write")
	w.Admit(r)
	w.ContinueFights(r)
	return response.Code
}

// object returns an object as one line, without what the server has put there, or "none".
func (w *world) object(of string) string {
	o, err := w.cluster.LookUp(of)
	if err != nil {
		return "none"
	}
	var parts []string
	show := func(name string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			w.t.Fatal(err)
		}
		if !slices.Contains([]string{"null", "{}", "[]", `""`}, string(text)) {
			parts = append(parts, name+strings.ReplaceAll(string(text), "sim.ctrlkit.dev/", ""))
		}
	}
	show("", o.Object["data"])
	show("annotations", o.GetAnnotations())
	show("labels", o.GetLabels())
	show("finalizers", o.GetFinalizers())
	if o.GetDeletionTimestamp() != nil {
		parts = append(parts, "being deleted")
	}
	if o.GetUID() != w.first[of] {
		parts = append(parts, "new UID")
	}
	return strings.Join(parts, " ")
}

// isObject compares an object with what it should be.
func (w *world) isObject(when, of, want string) {
	w.t.Helper()
	w.equal(of+" "+when, want, w.object(of))
}

// noted compares what was reported since the last call.
func (w *world) noted(want ...string) {
	w.t.Helper()
	w.equal("reports", strings.Join(want, "; "), strings.Join(w.notes, "; "))
	w.notes = nil
}

// unchanged returns a function that checks that the other objects are as they were.
func (w *world) unchanged(except string) func() {
	w.t.Helper()
	versions := func() map[string]string {
		list := map[string]string{}
		for _, o := range w.cluster.Server.Objects() {
			if of := cluster.ObjectName(o.Resource, o.Namespace, o.Name); of != except {
				u, err := w.cluster.LookUp(of)
				if err != nil {
					w.t.Fatal(err)
				}
				list[of] = u.GetResourceVersion()
			}
		}
		return list
	}
	before := versions()
	return func() {
		w.t.Helper()
		w.equal("the other objects", before, versions())
	}
}

func (w *world) equal(what string, want, got any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s: %s", what, diff)
	}
}
