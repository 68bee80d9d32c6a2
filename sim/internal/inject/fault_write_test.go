// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"
)

// What each fault at a write does: what the process gets as an answer, what happens to the process,
// and what the object is then, and when everything is idle.
func TestFaultsAtWrites(t *testing.T) {
	const was, written = `{"data":{"a":"1"}}`, `{"data":{"a":"2"}}`
	tests := map[string]struct {
		method, path, body string // without: an update of data in ConfigMap x

		answer string
		did    string // to the process and the schedule
		then   string // the ConfigMap after the write
		idle   string // and when everything is idle
	}{
		"no fault":                                                 {answer: "200", then: written, idle: written},
		"crash before write 1":                                     {answer: ErrCrashed.Error(), did: "crash", then: was, idle: was},
		"crash after write 1":                                      {answer: ErrCrashed.Error(), did: "crash", then: written, idle: written},
		"lose the answer of write 1: timeout":                      {answer: "504", then: written, idle: written},
		"lose the answer of write 1: 500":                          {answer: "500", then: written, idle: written},
		"lose the answer of write 1: reset":                        {answer: "read tcp: connection reset by peer", then: written, idle: written},
		"refuse write 1: 409":                                      {answer: "409", then: was, idle: was},
		"refuse write 1: 429":                                      {answer: "429", then: was, idle: was},
		"refuse write 1: webhook":                                  {answer: "403", then: was, idle: was},
		"land write 1 late":                                        {answer: ErrCrashed.Error(), did: "crash", then: was, idle: written},
		"second leader from write 1":                               {answer: "200", did: "start a second one", then: written, idle: written},
		"panic at write 1":                                         {answer: "panic", then: was, idle: was},
		"stop at write 1":                                          {answer: "200", did: "stop", then: written, idle: written},
		"pause before write 1 for 2m0s":                            {answer: "none yet", did: "pause for 2m0s", then: was, idle: was},
		"jump the clock by 1h0m0s at write 1":                      {answer: "200", did: "clock 1h0m0s", then: written, idle: written},
		"restart 1 events in the past of configmaps after write 1": {answer: ErrCrashed.Error(), did: "crash", then: written, idle: written},
		"touch the object before write 1": {
			answer: "200", then: `{"annotations":{"sim.ctrlkit.dev/touched":"true"},"data":{"a":"2"}}`, idle: written,
		},
		"mutate write 1": {
			answer: "200",
			then:   `{"annotations":{"sim.ctrlkit.dev/mutated":"true"},"data":{"a":"2"},"labels":{"sim.ctrlkit.dev/mutated":"true"}}`,
			idle:   `{"annotations":{"sim.ctrlkit.dev/mutated":"true"},"data":{"a":"2"},"labels":{"sim.ctrlkit.dev/mutated":"true"}}`,
		},
		"fight over write 1": {answer: "200", did: "timer 1s", then: written, idle: was},
		"recreate configmaps default/x after write 1": {
			answer: "200", did: "disturbed, timer 0s", then: "none", idle: written,
		},
		"delete and later create configmaps default/x after write 1": {answer: "200", did: "disturbed", then: "none", idle: written},
		"withhold configmaps default/x from write 1": {
			answer: "404", did: "stuck: the object configmaps default/x is missing, 0 blocked, slow down by 1m0s", then: "none", idle: was,
		},
		"strip the annotations of configmaps default/x after write 1": {
			body: `{"metadata":{"annotations":{"mine":"1"},"labels":{"mine":"1"}}}`, answer: "200", then: was, idle: was,
		},
		"lose the object in spite of the finalizer of write 1": {
			body: `{"metadata":{"finalizers":["example.com/f"]}}`, answer: "200", did: "disturbed", then: "none", idle: was,
		},
	}
	for plan, test := range tests {
		t.Run(plan, func(t *testing.T) {
			s := newStage(t, plan)
			if test.body == "" {
				test.body = `{"data":{"a":"2"}}`
			}
			w := &Write{
				Actor: "operator", Process: s, Turn: s,
				Request: request(t, "PATCH", "/api/v1/namespaces/default/configmaps/x", test.body),
			}
			equal(t, "answer", test.answer, show(s.Write(w)))
			equal(t, "the object then", test.then, s.world("configmaps default/x"))
			s.settle()
			equal(t, "the object when idle", test.idle, s.world("configmaps default/x"))
			equal(t, "did", test.did, strings.Join(s.did, ", "))
			equal(t, "fired", plan != "no fault", len(s.Fired()) == 1 && s.Fired()[0])
		})
	}
}

// A name that is occupied is free again after some time.
func TestOccupyName(t *testing.T) {
	s := newStage(t, "occupy the name before write 1")
	create := request(t, "POST", "/api/v1/namespaces/default/configmaps", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"y"},"data":{"a":"2"}}`)
	equal(t, "answer", "409", show(s.Write(&Write{Actor: "operator", Process: s, Turn: s, Request: create})))
	equal(t, "the object", `{"annotations":{"sim.ctrlkit.dev/foreign":"true"},"data":{"a":"2"}}`, s.world("configmaps default/y"))
	s.pass()
	equal(t, "the object later", "none", s.world("configmaps default/y"))
}

// A status that is wiped is noted for the oracles.
func TestWipeStatus(t *testing.T) {
	s := newStage(t, "wipe the status of pods default/p after write 1")
	s.ask(t, "user", "POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	status := request(t, "PATCH", "/api/v1/namespaces/default/pods/p/status", `{"status":{"message":"hello"}}`)
	equal(t, "answer", "200", show(s.Write(&Write{Actor: "operator", Process: s, Turn: s, Request: status})))
	if now := s.world("pods default/p"); strings.Contains(now, "hello") {
		t.Errorf("the status is still there: %s", now)
	}
	equal(t, "did", "status wiped", strings.Join(s.did, ", "))
}

// A write that was put back is the same write when it comes again.
func TestAPausedWriteCountsOnce(t *testing.T) {
	s := newStage(t, "pause before write 1 for 2m0s; refuse write 2: 409")
	w := &Write{Actor: "operator", Process: s, Turn: s, Request: request(t, "PATCH", "/api/v1/namespaces/default/configmaps/x", `{"data":{"a":"2"}}`)}
	var answers []string
	for range 3 {
		answers = append(answers, show(s.Write(w)))
	}
	equal(t, "answers", []string{"none yet", "200", "409"}, answers)
}
