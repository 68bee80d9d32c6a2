// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// silentWhenIdle demands that a resync and a restart of an idle operator change nothing. Requests
// that change nothing are noNoopWrites' business. What the operator does by the clock may fall into
// the same time, and is not accused.
type silentWhenIdle struct {
	request *apiserver.Request // the write that is being done
}

func (o *silentWhenIdle) OnWrite(_ *ledger, r *apiserver.Request, _ violate) { o.request = r }

func (o *silentWhenIdle) OnChange(l *ledger, c *change, v violate) {
	what := l.isProving()
	if what == "" || !c.byOperator || l.isPeriodic(workOf(c)) {
		return
	}
	text := c.Verb + " " + c.canonical
	if o.request != nil {
		text = cluster.Describe(o.request)
	}
	v(fmt.Sprintf("%s of the idle operator caused: %s", what, text))
}

func (o *silentWhenIdle) AfterWrite(*ledger, *apiserver.Request, *apiserver.Response, violate) {
	o.request = nil
}

func (o *silentWhenIdle) OnCall(l *ledger, c external.Call, v violate) {
	work := c.System + " " + c.Verb
	switch what := l.isProving(); {
	case what != "" && !l.isPeriodic(work):
		v(fmt.Sprintf("%s of the idle operator caused: %s", what, c))
	case l.byTheClock():
		l.periodic[work] = true
	}
}

func (o *silentWhenIdle) OnEvent(l *ledger, r *apiserver.Request, v violate) {
	// A new leader always says that it is one.
	if what := l.isProving(); what != "" && !strings.Contains(string(r.Body), "LeaderElection") {
		v(fmt.Sprintf("%s of the idle operator caused an Event: %s", what, describeEvent(r)))
	}
}

// suffixOfEvent matches the end of the name of an Event, which is the time.
var suffixOfEvent = regexp.MustCompile(`\.[0-9a-f]{14,16}$`)

// describeEvent says what a Kubernetes Event says. Its name, which client-go makes up, says nothing.
func describeEvent(r *apiserver.Request) string {
	event := struct{ Reason, Message, Note string }{}
	if err := json.Unmarshal(r.Body, &event); err != nil || event.Reason == "" {
		return strings.TrimSuffix(cluster.Describe(r), suffixOfEvent.FindString(cluster.Describe(r)))
	}
	return fmt.Sprintf("%s: %s", event.Reason, cmp.Or(event.Message, event.Note))
}

// noNoopWrites demands that a resync and a restart of an idle operator send no write that changes
// nothing: an update with what is there, or one that the server refuses. It costs a request for
// each object, and breaks nothing. Without a fault it also demands that no poll sends one.
type noNoopWrites struct {
	changed bool           // by the write that is being done
	last    time.Time      // when something has changed as the last
	polled  map[string]int // how often a write has changed nothing since, long after it
}

// polledOften is how often a write has to come by the clock.
const polledOften = 2

func (o *noNoopWrites) OnWrite(*ledger, *apiserver.Request, violate) { o.changed = false }

func (o *noNoopWrites) OnChange(l *ledger, c *change, _ violate) {
	o.changed = o.changed || c.byOperator
	o.last, o.polled = l.now(), map[string]int{}
}

func (o *noNoopWrites) AfterWrite(l *ledger, r *apiserver.Request, answer *apiserver.Response, v violate) {
	what := l.isProving()
	if o.changed {
		return
	}
	if what == "" {
		if l.faultless && answer.Code < 300 && !o.last.IsZero() && l.now().Sub(o.last) >= l.pace.Poll {
			of := cluster.Describe(r)
			if o.polled[of]++; o.polled[of] == polledOften {
				v("a poll of the idle operator sends a write that changes nothing: " + of)
			}
		}
		return
	}
	text := "that changes nothing"
	if answer.Code >= 300 {
		text = fmt.Sprintf("that the server refuses with %d", answer.Code)
	}
	v(fmt.Sprintf("%s of the idle operator caused a write %s: %s", what, text, cluster.Describe(r)))
}

// endsWell demands of a run without faults that it ends well: by an operator that fails there,
// others can't be judged.
type endsWell struct {
	refused map[string]*refusal // by what was asked for
}

// refusal is a write that the server refuses.
type refusal struct {
	times  int // since the server has accepted it as the last
	stage  int // at which it was refused as the last
	answer string
}

// refusedTooOften is how often the server has to refuse a write until it is no coincidence.
const refusedTooOften = 3

func (o *endsWell) AfterWrite(l *ledger, r *apiserver.Request, answer *apiserver.Response, _ violate) {
	key := cluster.Describe(r)
	if answer.Code < 300 || isAnswer(r, answer.Code) {
		delete(o.refused, key)
		return
	}
	if o.refused[key] == nil {
		o.refused[key] = &refusal{}
	}
	f := o.refused[key]
	f.times, f.stage, f.answer = f.times+1, l.stage, strings.TrimSpace(fmt.Sprintf("%d %s", answer.Code, messageOf(answer)))
}

// isAnswer reports whether a refusal is an answer that operators work with: create unless it is
// there, delete unless it is gone, update unless it has changed. One that never gets beyond a
// conflict does not become idle, or its last reconcile fails.
func isAnswer(r *apiserver.Request, code int) bool {
	return code == http.StatusConflict || r.Verb == "delete" && code == http.StatusNotFound
}

func messageOf(answer *apiserver.Response) string {
	var status struct{ Reason, Message string }
	if err := json.Unmarshal(answer.Body, &status); err != nil {
		return ""
	}
	return strings.TrimSpace(status.Reason + ": " + status.Message)
}

func (o *endsWell) WhenIdle(l *ledger, i Idle, v violate) {
	if !l.faultless || i.Checkpoint == 0 || l.aborted {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(o.refused)) {
		if f := o.refused[key]; f.stage == l.stage && f.times >= refusedTooOften {
			v(fmt.Sprintf("without a fault, the server refuses a write again and again: %s: %s", key, WithHint(f.answer)))
		}
	}
	for _, f := range i.Failing {
		v(fmt.Sprintf("without a fault, at checkpoint %d, the last reconcile of %s by controller %q has failed: %s", i.Checkpoint, f.Object, f.Controller, WithHint(f.Err)))
	}
}

var missingNamespace = regexp.MustCompile(`namespaces "([^"]+)" not found`)

// WithHint adds to an error what to do about it if the workload lacks a Namespace: the operator is not
// to blame then.
func WithHint(text string) string {
	if found := missingNamespace.FindStringSubmatch(text); found != nil {
		return fmt.Sprintf("%s; if users make the Namespace %s, add it to Workload.Objects, or create it in the Script", text, found[1])
	}
	return text
}

// cacheUntouched demands that what caches share is not changed in place: the next reader gets the
// change, and the server does not have it.
type cacheUntouched struct{}

func (cacheUntouched) WhenIdle(_ *ledger, i Idle, v violate) {
	for _, text := range i.Altered {
		v("an object in a cache of the operator was changed in place, which every other reader of the cache sees: " + text)
	}
}
