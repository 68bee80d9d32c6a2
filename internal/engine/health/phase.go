// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// phases says what a phase means, for the words on which kinds agree, in lower case.
var phases = map[string]State{}

func init() {
	for state, words := range map[State]string{
		StateReady:       "ready running active bound succeeded success successful complete completed available healthy online serving listening streaming working existing deployed established provisioned done finished enabled valid stable attached green atlatestknown ok opened synced synchronized registered connected joined allocated assigned admitted applied operational optimal passed normal compliant",
		StateProgressing: "pending creating provisioning initializing installing updating upgrading progressing scaling waiting starting building reconciling in-progress inprogress in_progress scheduling scheduled queued deploying configuring restoring resuming new accepted prepared paused submitted yellow bootstrap planned initial draft unsynced outofsync shutdown portallocation",
		StateFailed:      "failed failure error errored degraded lost invalid rejected crashed unhealthy unavailable missing timedout expired canceled aborted inconclusive faulted red err blocked stuck denied rejected refused dead fatal broken corrupted conflict killed evicted approval noncompliant partially partial",
		StateTerminating: "deleting terminating removing destroying deprovisioning",
	} {
		for word := range strings.FieldsSeq(words) {
			phases[word] = state
		}
	}
}

// wholePhases are words that mean this only alone: ScalingDown is not Down.
var wholePhases = map[string]State{
	"open": StateReady, "created": StateReady, "exists": StateReady, "initialized": StateReady, "installed": StateReady, "notfound": StateProgressing, "down": StateFailed, "warning": StateFailed,
}

// parts are the words of a phase: "PartiallyFailed" has two, "Cluster in healthy state" four.
var parts = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// spelling makes British English American.
var spelling = strings.NewReplacer("ancell", "ancel", "ising", "izing", "ised", "ized")

// meaningOf returns the state that a phase stands for, empty if its words do not say. Of several,
// failed counts before progressing, and that before ready, unless there is a negation.
func meaningOf(phase string) State {
	phase = spelling.Replace(phase)
	for _, words := range []map[string]State{phases, wholePhases} {
		if state, ok := words[strings.ToLower(phase)]; ok {
			return state
		}
	}
	found, negated := make(map[State]bool), false
	for _, part := range parts.FindAllString(phase, -1) {
		switch part = strings.ToLower(part); part {
		case "not", "no", "without":
			negated = true
		case "progress":
			found[StateProgressing] = true
		default:
			state := phases[part]
			if state == "" && part != "warning" && strings.HasSuffix(part, "ing") { // "Failing over"
				state = StateProgressing
			}
			found[state] = true
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

// wordPaths are where objects without conditions that say something have their state as a word.
var wordPaths = [][]string{
	{"phase"}, {"state"}, {"status"}, {"health", "status"}, {"state", "phase"}, {"applicationState", "state"}, {"jobStatus", "state"},
}

// wordFields are other fields of a status that have such a word: clusterStatus, jobStatus, health.
// A field that is named after the kind is one, too: dbInstanceStatus of a DBInstance.
var wordFields = regexp.MustCompile(`^(?i:((postgres)?cluster|current|overall|lifecycle|job|jobdeployment|application|instance|resource|service)(status|state|phase)|health|robustness|compliant)$`)

// partFields are fields that have the state of a part or of the last operation as text: syncStatus.
var partFields = regexp.MustCompile(`(?i)(status|state|operation|health)$`)

// formerFields are about what is over.
var formerFields = regexp.MustCompile(`(?i)(previous|backup|history)`)

// A word is the state of an object as one of its fields has it.
type word struct {
	field, text string
	state       State
}

// words returns the words of a status: those of wordPaths first, others in the order of their
// names.
func (d *document) words() []word {
	var found []word
	for _, path := range wordPaths {
		if text := d.text(append([]string{"status"}, path...)...); text != "" {
			found = append(found, word{path[0], text, d.meaningOf(text)})
		}
	}
	for _, field := range slices.Sorted(maps.Keys(d.status)) {
		text := textOf(d.status[field])
		if text != "" && (wordFields.MatchString(field) || strings.EqualFold(field, d.gk.Kind+"Status")) {
			found = append(found, word{field, text, d.meaningOf(text)})
		} else if w, ok := d.partWord(field); ok {
			found = append(found, w)
		}
	}
	return found
}

// partWord returns the word that a field has for a part of the object or for its last operation, if
// it is bad: runStatus.status, ceph.health. A condition Ready sums up all but the health.
func (d *document) partWord(field string) (word, bool) {
	if formerFields.MatchString(field) {
		return word{}, false
	}
	part := &document{gk: d.gk, content: asMap(d.status[field])}
	texts := []word{{field: field + ".health", text: part.text("health")}}
	if ready, ok := d.condition("Ready"); !ok || ready.status != "True" {
		for _, name := range []string{"status", "state", "phase"} {
			texts = append(texts, word{field: field + "." + name, text: part.text(name)})
		}
		if partFields.MatchString(field) {
			texts = append(texts, word{field: field, text: textOf(d.status[field])})
		}
	}
	for _, w := range texts {
		if strings.EqualFold(w.text, "missing") {
			continue // it may be that it is not wanted
		}
		if w.state = d.meaningOf(w.text); w.state == StateFailed || w.state == StateProgressing {
			return w, true
		}
	}
	return word{}, false
}

// ending are kinds of objects whose work has an end: running, they are not ready.
var ending = regexp.MustCompile(`(Job|Run|Workflow|Backup|Restore|Application|Experiment)$`)

// repeated are kinds of objects that make such objects.
var repeated = regexp.MustCompile(`^(Cron|Scheduled|Scaled)|^Application$`)

func (d *document) ends() bool {
	return ending.MatchString(d.gk.Kind) && !repeated.MatchString(d.gk.Kind)
}

func (d *document) meaningOf(text string) State {
	if state := meaningOf(text); state != StateReady || !d.ends() {
		return state
	}
	if slices.Contains([]string{"running", "active"}, strings.ToLower(text)) {
		return StateProgressing
	}
	return StateReady
}

// flags are where objects say by a boolean whether they are ready.
var flags = []string{"ready", "readyToUse", "valid", "healthy"}

// byFlags judges an object by a boolean.
func byFlags(d *document) (Health, bool) {
	for _, name := range flags {
		if ready, ok := d.status[name].(bool); ok && !ready {
			message := cmp.Or(d.errorText(), "it is not "+name)
			if name == "valid" {
				return Health{StateFailed, "NotValid", message}, true
			}
			return Health{StateProgressing, "NotReady", message}, true
		} else if ok {
			return Health{State: StateReady}, true
		}
	}
	return Health{}, false
}

// errorText returns what a status says of an error.
func (d *document) errorText() string {
	return cmp.Or(d.text("status", "error"), d.text("status", "error", "message"), d.text("status", "errorMessage"), d.text("status", "errMsg"))
}

// byError judges an object of which nothing is known but an error.
func byError(d *document) (Health, bool) {
	text := d.errorText()
	return Health{StateFailed, "Error", text}, text != ""
}

// byPhase judges an object by words: by the first that has an agreed meaning, unless another says
// that the object has failed or is at work. A word that is not known is no readiness: nothing is.
func byPhase(d *document) (Health, bool) {
	words := d.words()
	if len(words) == 0 {
		return Health{}, false
	}
	for _, state := range []State{StateFailed, StateTerminating, StateProgressing, StateReady} {
		i := slices.IndexFunc(words, func(w word) bool { return w.state == state })
		switch {
		case i < 0:
		case state == StateReady:
			return Health{State: StateReady}, true
		default:
			return Health{state, ReasonPhase, cmp.Or(d.text("status", "message"), "its "+words[i].field+" is "+words[i].text)}, true
		}
	}
	return unknown(ReasonUnknownPhase, "its "+words[0].field+" is "+words[0].text), true
}
