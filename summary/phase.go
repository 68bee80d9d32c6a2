// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import (
	"regexp"
	"strings"
)

// phases says what a phase means, for the words on which kinds agree, in lower case.
var phases = map[string]State{}

func init() {
	for state, words := range map[State]string{
		StateReady:       "ready running active bound succeeded success successful complete completed available healthy online deployed established provisioned done finished enabled valid ok",
		StateProgressing: "pending creating provisioning initializing initialising installing updating upgrading progressing scaling waiting starting building reconciling in-progress inprogress in_progress scheduling scheduled queued deploying configuring restoring resuming new",
		StateFailed:      "failed failure error errored degraded lost invalid rejected crashed unhealthy unavailable missing timedout",
		StateTerminating: "deleting terminating removing destroying deprovisioning",
	} {
		for word := range strings.FieldsSeq(words) {
			phases[word] = state
		}
	}
}

// parts are the words of a phase: "PartiallyFailed" has two, "Cluster in healthy state" four.
var parts = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// meaningOf returns the state that a phase stands for, empty if its words do not say. Of several,
// failed counts before progressing, and that before ready, unless there is a negation.
func meaningOf(phase string) State {
	if state, ok := phases[strings.ToLower(phase)]; ok {
		return state
	}
	found, negated := make(map[State]bool), false
	for _, part := range parts.FindAllString(phase, -1) {
		switch part = strings.ToLower(part); part {
		case "not", "no", "without":
			negated = true
		case "progress", "setting", "failing", "finalizing":
			found[StateProgressing] = true
		default:
			found[phases[part]] = true
		}
	}
	switch {
	case negated && found[StateReady]:
		return StateProgressing
	case negated:
		return ""
	}
	for _, state := range []State{StateFailed, StateTerminating, StateProgressing, StateReady} {
		if found[state] {
			return state
		}
	}
	return ""
}

// phasePaths are where objects without conditions that say something have their state as a word.
var phasePaths = [][]string{{"status", "phase"}, {"status", "state"}, {"status", "health", "status"}}

// byPhase judges an object by a word. A word that is not known is no readiness: nothing is.
func byPhase(d *document) (Summary, bool) {
	for _, path := range phasePaths {
		word := d.text(path...)
		if word == "" {
			continue
		}
		message := d.text("status", "message")
		if message == "" {
			message = "its " + path[1] + " is " + word
		}
		switch state := meaningOf(word); state {
		case "":
			return unknown(ReasonUnknownPhase, "its "+path[1]+" is "+word), true
		case StateReady:
			return Summary{State: StateReady}, true
		default:
			return Summary{state, ReasonPhase, message}, true
		}
	}
	return Summary{}, false
}
