// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package summary

import "strings"

// phases says what a phase means, for the words on which kinds agree, in lower case.
var phases = map[string]State{}

func init() {
	for state, words := range map[State]string{
		StateReady:       "ready running active bound succeeded success successful complete completed available healthy online deployed established provisioned done finished enabled ok",
		StateProgressing: "pending creating provisioning initializing initialising installing updating upgrading progressing scaling waiting starting building reconciling in-progress inprogress in_progress scheduling scheduled queued deploying configuring restoring resuming new",
		StateFailed:      "failed failure error errored degraded lost invalid rejected crashed unhealthy unavailable missing timedout",
		StateTerminating: "deleting terminating removing destroying deprovisioning",
	} {
		for word := range strings.FieldsSeq(words) {
			phases[word] = state
		}
	}
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
		switch state := phases[strings.ToLower(word)]; state {
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
