// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package actor

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
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
	shown map[string]string    // what was last shown of objects

	silent bool // no object has a condition that says why it can't continue
}

// inWorld runs a test in a bubble, in a world in which a user has created a ConfigMap and a Pod.
func inWorld(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, uids: map[types.UID]string{}, first: map[string]types.UID{}, shown: map[string]string{}}
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
		w.do(`user POST configmaps {"metadata":{"name":"x","annotations":{"own":"1"},"labels":{"own":"1"}},"data":{"a":"1"}}`)
		w.do(`user POST pods {"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
		w.changes()
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
type system struct{}

func (*system) Inventory() []external.Resource { return nil }
func (*system) Created(types.UID) int          { return 0 }
func (*system) MintsIDs() bool                 { return false }
func (*system) Drift(owner types.UID) (id string, ok bool) {
	return "b1", owner == "1" || owner == ""
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

// request returns a request of the operator. APPLY is a server-side apply; OWNER stands for the UID of the
// Pod of the world.
func (w *world) request(method, path, body string) *apiserver.Request {
	w.t.Helper()
	contentType := "application/json"
	switch method {
	case "PATCH":
		contentType = "application/merge-patch+json"
	case "APPLY":
		method, path, contentType = "PATCH", path+"?fieldManager=operator&force=true", "application/apply-patch+yaml"
	}
	if !strings.HasPrefix(path, "/") {
		path = "/api/v1/namespaces/default/" + path
	}
	r, err := apiserver.NewRequest(method, path, contentType, []byte(strings.ReplaceAll(body, "OWNER", string(w.first["pods default/p"]))))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Actor = "operator"
	return r
}

// do does what a line of a story says, and returns what it shows besides changes and reports. A line has a
// verb and an object, as plans name it, or a verb and a request.
func (w *world) do(line string) any {
	w.t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "pass":
		d, err := time.ParseDuration(rest)
		if err != nil {
			w.t.Fatal(err)
		}
		w.pass(d)
	case "settle":
		w.settle()
	case "work":
		for w.cluster.Server.Work() {
		}
	case "silent":
		w.silent = true
	case "rounds":
		return w.fights[rest].rounds
	case "blocked":
		return w.Blocked()
	case "outage":
		var system, text string
		_, _ = fmt.Sscan(rest, &system, &text) //nolint:errcheck // until idle
		d, _ := time.ParseDuration(text)       //nolint:errcheck // until idle
		w.Begin(system, d)
	case "call", "drift":
		system, owner, _ := strings.Cut(rest, " ")
		call := external.Call{System: system, Owner: types.UID(owner)}
		if verb == "call" {
			return map[bool]string{true: "stopped", false: "answered"}[w.Stops(call)]
		}
		before := w.trace.Len()
		w.Drift(call)
		for _, e := range w.trace.Entries()[before:] {
			return e.Actor + " " + e.What + " " + e.Text
		}
	default:
		if to, ok := toObjects[verb]; ok {
			to(w.Actors, rest)
			return nil
		}
		parts := append(strings.SplitN(rest, " ", 3), "", "")
		return w.send(verb, w.request(parts[0], parts[1], parts[2]))
	}
	return nil
}

// toObjects and toRequests are the actors that lines of stories name.
var (
	toObjects = map[string]func(*Actors, string){
		"recreate": (*Actors).Recreate, "delete-and-create": (*Actors).DeleteAndCreate, "withhold": (*Actors).Withhold, "wipe-status": (*Actors).WipeStatus,
		"strip": (*Actors).StripAnnotations, "bring-back": (*Actors).BringBack, "keep-away": (*Actors).KeepAway,
	}
	toRequests = map[string]func(*Actors, *apiserver.Request){
		"touch": (*Actors).Touch, "delete": (*Actors).DeleteTarget, "mutate": (*Actors).MutateWritesOf, "occupy": (*Actors).Occupy,
		"occupy-by-controller": (*Actors).OccupyByController, "leave-orphan": (*Actors).LeaveOrphan, "vanish": (*Actors).Vanish, "admit": (*Actors).Admit,
	}
)

// send sends a request: "write" and "fight" let the operator write, past admission and the fights; a fight
// begins over what the write has changed. Other verbs are actors, or clients.
func (w *world) send(verb string, r *apiserver.Request) any {
	if to, ok := toRequests[verb]; ok {
		to(w.Actors, r)
		return nil
	}
	before := w.ContentOf(r)
	if verb != "write" && verb != "fight" {
		r.Actor = verb
		return w.cluster.Execute(r, "write").Code
	}
	code := w.cluster.Execute(r, "write").Code
	if verb == "fight" && before != nil {
		w.Fight(r, before)
	}
	w.Admit(r)
	w.ContinueFights(r)
	return code
}

// changes returns the objects that have changed since it was called last, a line each, without what the
// server has put there. One that was written and is as before is shown, too.
func (w *world) changes() (lines []string) {
	now := map[string]string{}
	for _, o := range w.cluster.Server.Objects() {
		of := cluster.ObjectName(o.Resource, o.Namespace, o.Name)
		now[of] = w.object(of)
		version, _, _ := unstructured.NestedString(o.Content, "metadata", "resourceVersion") //nolint:errcheck // each has one
		if w.shown[of] != now[of]+version {
			lines = append(lines, strings.TrimSuffix(of+": "+now[of], " "))
		}
		w.shown[of] = now[of] + version
	}
	for of := range w.shown {
		if _, there := now[of]; !there {
			lines = append(lines, of+" is gone")
			delete(w.shown, of)
		}
	}
	slices.Sort(lines)
	return lines
}

// object returns an object as one line.
func (w *world) object(of string) string {
	o, err := w.cluster.LookUp(of)
	if err != nil {
		w.t.Fatal(err)
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
	for _, r := range o.GetOwnerReferences() {
		text := "owner " + r.Kind + " " + r.Name
		if owner := w.uids[r.UID]; !strings.HasSuffix(owner, "/"+r.Name) {
			text += " that never was"
		}
		if r.Controller != nil && *r.Controller {
			text += " as controller"
		}
		parts = append(parts, text)
	}
	if status, ok := o.Object["status"].(map[string]any); ok {
		show("message", status["message"])
	}
	if o.GetDeletionTimestamp() != nil {
		parts = append(parts, "being deleted")
	}
	if o.GetUID() != w.first[of] {
		parts = append(parts, "new UID")
	}
	return strings.Join(parts, " ")
}

// Stories are in testdata: what is done, a line each, and below it what it shows, what has changed in the
// cluster, and what was reported.
func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no stories: ", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			golden.Stories(t, filepath.Base(file), func(story []string) (played []string) {
				inWorld(t, func(w *world) { played = golden.Play(story, w.show) })
				return played
			})
		})
	}
}

// show does what a line says, and returns all that it shows.
func (w *world) show(line string) (shown []string) {
	if text := w.do(line); text != nil {
		shown = append(shown, fmt.Sprint(text))
	}
	shown = slices.Concat(shown, w.changes(), w.notes)
	w.notes = nil
	return shown
}
