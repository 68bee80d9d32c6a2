// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"strings"
	"testing"
)

// A writeCase is what a fault at a write does.
type writeCase struct {
	plan               string
	method, path, body string // without: an update of data in ConfigMap x
	of                 string // without: ConfigMap x
	before             string // a ConfigMap that the operator has created before

	answer string // what the process gets
	by     string // who strikes, without: operator
	did    string // to the process and the schedule
	then   string // the object after the write
	idle   string // and when everything is idle
	seen   string // the changes that watchers see until then
	next   string // what the next process gets for the same write; without: 200
}

const (
	was     = `{"data":{"a":"1"}}`
	written = `{"data":{"a":"2"}}`
	mutated = `{"annotations":{"sim.ctrlkit.dev/mutated":"true"},"data":{"a":"2"},"labels":{"sim.ctrlkit.dev/mutated":"true"}}`

	occupant = `{"annotations":{"sim.ctrlkit.dev/foreign":"true"},"data":{"another":"1"},"labels":{"app":"another"}}`
	owned    = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y","labels":{"app":"1"},
		"ownerReferences":[{"apiVersion":"v1","kind":"Widget","name":"w","uid":"9d3f7a5e-1c64-4b52-8c0d-6a1e2f3b4c5d"}]},"data":{"a":"2"}}`

	oneWrite = "operator MODIFIED"
)

// crashedAnswer is what everything of a crashed process gets.
var crashedAnswer = ErrCrashed.Error()

var writeCases = []writeCase{
	{plan: "no fault", answer: "200", then: written, idle: written, seen: oneWrite},
	{plan: "crash before write 1", answer: crashedAnswer, did: "crash", then: was, idle: was},
	{plan: "crash after write 1", answer: crashedAnswer, did: "crash", then: written, idle: written, seen: oneWrite},
	{plan: "lose the answer of write 1: timeout", answer: "504", then: written, idle: written, seen: oneWrite},
	{plan: "lose the answer of write 1: 500", answer: "500", then: written, idle: written, seen: oneWrite},
	{plan: "lose the answer of write 1: reset", answer: "read tcp: connection reset by peer", then: written, idle: written, seen: oneWrite},
	{plan: "refuse write 1: 409", answer: "409", then: was, idle: was},
	{plan: "refuse write 1: 429", answer: "429", then: was, idle: was},
	{plan: "refuse write 1: 403", answer: "403", then: was, idle: was},
	{plan: "refuse write 1: 422", answer: "422", then: was, idle: was},
	{plan: "refuse write 1: 500", answer: "500", then: was, idle: was},
	{plan: "refuse write 1: webhook", answer: "403", then: was, idle: was},
	{plan: "land write 1 late", answer: crashedAnswer, did: "crash", then: was, idle: written, seen: oneWrite},
	{plan: "second leader from write 1", answer: "200", did: "start a second one", then: written, idle: written, seen: oneWrite},
	{plan: "panic at write 1", answer: "panic", then: was, idle: was},
	{plan: "stop at write 1", answer: "200", did: "stop", then: written, idle: written, seen: oneWrite},
	{plan: "pause before write 1 for 2m0s", answer: "none yet", did: "pause for 2m0s", then: was, idle: was},
	{plan: "jump the clock by 1h0m0s at write 1", answer: "200", did: "clock 1h0m0s", then: written, idle: written, seen: oneWrite},
	{plan: "jump the clock by -1h0m0s at write 1", answer: "200", did: "clock -1h0m0s", then: written, idle: written, seen: oneWrite},
	{
		plan: "restart 1 events in the past of configmaps after write 1", answer: crashedAnswer, did: "crash", then: written, idle: written,
		seen: oneWrite,
	},
	{
		plan: "touch the object before write 1", answer: "200", then: `{"annotations":{"sim.ctrlkit.dev/touched":"true"},"data":{"a":"2"}}`,
		idle: written, seen: "other MODIFIED, operator MODIFIED, other MODIFIED",
	},
	{plan: "mutate write 1", answer: "200", then: mutated, idle: mutated, seen: "operator MODIFIED, other MODIFIED"},
	{
		plan: "occupy the name before write 1", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: owned,
		of: "configmaps default/y", answer: "409", then: occupant, idle: "none", did: "timer 10m0s, slow down by 10m0s",
		seen: "other ADDED, other DELETED", next: "409",
	},
	{
		plan: "occupy the name before write 1 by another controller", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: owned,
		of: "configmaps default/y", answer: "409", then: occupant, idle: "none", did: "timer 10m0s, slow down by 10m0s",
		seen: "other ADDED, other ADDED, other DELETED, other DELETED", next: "409",
	},
	{
		plan: "leave an orphan before write 1", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: owned,
		of: "configmaps default/y", answer: "409", then: `{"data":{"a":"2"},"labels":{"app":"1"}}`, idle: "none",
		did:  "timer 10m0s, slow down by 10m0s",
		seen: "other ADDED, other DELETED", next: "409",
	},
	{
		plan: "delete the object before write 1", path: "/api/v1/namespaces/default/configmaps/child", of: "configmaps default/child",
		before: `{"metadata":{"name":"child"}}`, answer: "404", then: "none", idle: "none", seen: "other DELETED", next: "404",
	},
	{plan: "fight over write 1", answer: "200", by: "other", did: "timer 1s", then: written, idle: was, seen: "operator MODIFIED, other MODIFIED"},
	{
		plan: "recreate configmaps default/x after write 1", answer: "200", by: "user", did: "disturbed, timer 0s", then: "none", idle: written,
		seen: "operator MODIFIED, other DELETED, other ADDED", next: "404",
	},
	{
		plan: "delete and later create configmaps default/x after write 1", answer: "200", by: "user", did: "disturbed", then: "none",
		idle: written, seen: "operator MODIFIED, other DELETED, other ADDED", next: "404",
	},
	{
		plan: "withhold configmaps default/x from write 1", answer: "404", then: "none", idle: was, seen: "other DELETED, other ADDED",
		did: "stuck: the object configmaps default/x is missing, blocked [], slow down by 1m0s", next: "404",
	},
	{
		plan: "wipe the status of pods default/p after write 1", method: "PATCH", path: "/api/v1/namespaces/default/pods/p/status",
		body: `{"status":{"message":"hello"}}`, of: "pods default/p", answer: "200", by: "other", did: "status wiped",
		then: `{"status":{}}`, idle: `{"status":{}}`, seen: "operator MODIFIED, other MODIFIED",
	},
	{
		plan: "strip the annotations of configmaps default/x after write 1", body: `{"metadata":{"annotations":{"mine":"1"},"labels":{"mine":"1"}}}`,
		answer: "200", by: "other", then: was, idle: was, seen: "operator MODIFIED, other MODIFIED",
	},
	{
		plan: "lose the object in spite of the finalizer of write 1", body: `{"metadata":{"finalizers":["example.com/f"]}}`, answer: "200",
		by: "user", did: "disturbed", then: "none", idle: was, seen: "operator MODIFIED, user DELETED, other ADDED", next: "404",
	},
}

// write sends the write of a case.
func (c *writeCase) write(t *testing.T, s *stage, actor string) string {
	if c.before != "" && actor == "operator" {
		s.ask(t, "operator", "POST", "/api/v1/namespaces/default/configmaps", c.before)
		s.seen = nil
	}
	r := request(
		t, cmp.Or(c.method, "PATCH"), cmp.Or(c.path, "/api/v1/namespaces/default/configmaps/x"), cmp.Or(c.body, `{"data":{"a":"2"}}`),
	)
	r.Actor = actor
	return show(s.Write(&Write{Actor: actor, Process: s, Turn: s, Request: r}))
}

// What each fault at a write does: what the process gets as an answer, what happens to the process,
// what the object is then and when everything is idle, and what watchers see of it.
func TestFaultsAtWrites(t *testing.T) {
	for _, c := range writeCases {
		t.Run(c.plan, func(t *testing.T) {
			s := newStage(t, c.plan)
			of := cmp.Or(c.of, "configmaps default/x")
			equal(t, "answer", c.answer, c.write(t, s, "operator"))
			equal(t, "the object then", c.then, s.world(of))
			s.settle()
			equal(t, "the object when idle", c.idle, s.world(of))
			equal(t, "seen", c.seen, strings.Join(s.seen, ", "))
			equal(t, "did", c.did, strings.Join(s.did, ", "))
			if c.plan != "no fault" {
				equal(t, "fired", []bool{true}, s.Fired())
				equal(t, "struck", cmp.Or(c.by, "operator"), s.struck())
			}
		})
	}
}

// A fault strikes once: the same write of the next process fails only where the object is not there
// or the name is still taken.
func TestTheNextWrite(t *testing.T) {
	for _, c := range writeCases {
		s := newStage(t, c.plan)
		c.write(t, s, "operator")
		equal(t, c.plan, cmp.Or(c.next, "200"), c.write(t, s, "operator-2"))
	}
}

// Some faults strike only if the write has done what they are about.
func TestFaultsThatDoNotStrike(t *testing.T) {
	const missing, stale = "/api/v1/namespaces/default/configmaps/missing", `{"metadata":{"resourceVersion":"1","finalizers":["example.com/f"]}}`
	for _, c := range []writeCase{
		{plan: "lose the object in spite of the finalizer of write 1", path: missing, answer: "404"},
		{plan: "lose the object in spite of the finalizer of write 1", body: stale, answer: "409"},
		{plan: "fight over write 1", path: missing, answer: "404"},
		{plan: "fight over write 1", body: stale, answer: "409"},
		{plan: "fight over write 1", method: "POST", path: "/api/v1/namespaces/default/configmaps", body: `{"metadata":{"name":"y"}}`, answer: "201"},
		{plan: "delete the object before write 1", answer: "200"}, // which a user has created
		{plan: "crash before write 2", answer: "200"},
		{plan: "refuse read 1: 403", answer: "200"},
		{plan: "withhold configmaps default/x from write 0", answer: "200"},
		{plan: "withhold configmaps default/x from deletion 1", answer: "200"},
	} {
		s := newStage(t, c.plan)
		equal(t, c.plan, c.answer, c.write(t, s, "operator"))
		s.settle()
		equal(t, c.plan+" fired", []bool{false}, s.Fired())
		equal(t, c.plan+" did", 0, len(s.did))
	}
}

// A write that arrives late is judged then, and may be refused.
func TestALateWriteMayBeRefused(t *testing.T) {
	s := newStage(t, "land write 1 late")
	c := writeCase{}
	c.write(t, s, "operator")
	s.ask(t, "user", "DELETE", "/api/v1/namespaces/default/configmaps/x", "{}")
	s.settle()
	equal(t, "the object", "none", s.world("configmaps default/x"))
	if text := s.Trace.String(); !strings.Contains(text, "write 1 (late)  patch configmaps default/x -> 404") {
		t.Errorf("the trace does not have the late write:\n%s", text)
	}
}

// Faults at the same write strike together, those before it as the first ones. One that ends the
// write keeps the others from striking.
func TestFaultsAtTheSameWrite(t *testing.T) {
	tests := map[string]struct {
		answer, seen string
		fired        []bool
	}{
		"crash after write 1; touch the object before write 1": {crashedAnswer, "other MODIFIED, operator MODIFIED", []bool{true, true}},
		"crash after write 1; crash before write 1":            {crashedAnswer, "", []bool{false, true}},
		"refuse write 1: 409; mutate write 1":                  {"409", "", []bool{true, false}},
		"mutate write 1; lose the answer of write 1: 500":      {"500", "operator MODIFIED, other MODIFIED", []bool{true, true}},
	}
	for plan, test := range tests {
		s := newStage(t, plan)
		c := writeCase{}
		equal(t, plan, test.answer, c.write(t, s, "operator"))
		equal(t, plan+" seen", test.seen, strings.Join(s.seen, ", "))
		equal(t, plan+" fired", test.fired, s.Fired())
	}
}

// A write that was put back is the same write when it comes again.
func TestAPausedWriteCountsOnce(t *testing.T) {
	s := newStage(t, "pause before write 1 for 2m0s; refuse write 2: 409")
	c := writeCase{}
	var answers []string
	for range 3 {
		answers = append(answers, c.write(t, s, "operator"))
	}
	equal(t, "answers", []string{"none yet", "200", "409"}, answers)
}
