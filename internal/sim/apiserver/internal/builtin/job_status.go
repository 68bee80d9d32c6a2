// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// jobState is what the checks of a Job's status read of it.
type jobState struct {
	status     object
	conditions map[string]bool // those that are True
	suspended  any             // the status of the condition Suspended
}

func stateOf(o object) jobState {
	s := jobState{status: child(o, "status"), conditions: map[string]bool{}}
	each(s.status, "conditions", func(c object) {
		kind, _ := c["type"].(string)
		if c["status"] == "True" {
			s.conditions[kind] = true
		}
		if kind == "Suspended" {
			s.suspended = c["status"]
		}
	})
	return s
}

func (s jobState) finished() bool { return s.conditions["Complete"] || s.conditions["Failed"] }

func (s jobState) number(name string) int64 {
	n, _ := s.status[name].(int64)
	return n
}

func (s jobState) time(name string) (time.Time, bool) {
	text, _ := s.status[name].(string)
	t, err := time.Parse(time.RFC3339, text)
	return t, err == nil
}

// jobStatus checks a changed status of a Job. Most checks are made only when what they read has
// changed, so that a status that was wrong before can be repaired step by step.
func jobStatus(obj, old object) field.ErrorList {
	is, was := stateOf(obj), stateOf(old)
	at := field.NewPath("status")
	var errs field.ErrorList
	for _, name := range []string{"active", "succeeded", "failed", "ready", "terminating"} {
		if n := is.number(name); n < 0 {
			errs = append(errs, field.Invalid(at.Child(name), n, "must be greater than or equal to 0"))
		}
	}
	errs = append(errs, jobConditions(is, was, at)...)
	errs = append(errs, jobTimes(is, was, child(obj, "spec"), at)...)
	errs = append(errs, jobCounters(is, was, child(obj, "spec"), at)...)
	return errs
}

func jobConditions(is, was jobState, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	refuse := func(when bool, detail string) {
		if when {
			errs = append(errs, field.Invalid(at.Child("conditions"), field.OmitValueType{}, detail))
		}
	}
	changed := func(names ...string) bool {
		for _, name := range names {
			if is.conditions[name] != was.conditions[name] {
				return true
			}
		}
		return false
	}
	complete, failed, target, met := is.conditions["Complete"], is.conditions["Failed"], is.conditions["FailureTarget"], is.conditions["SuccessCriteriaMet"]
	refuse(changed("Complete", "Failed") && complete && failed, "cannot set Complete=True and Failed=true conditions")
	refuse(changed("Complete", "FailureTarget") && complete && target, "cannot set Complete=True and FailureTarget=true conditions")
	refuse(changed("Failed") && failed && !target, "cannot set Failed=True condition without the FailureTarget=true condition")
	refuse(changed("Complete", "SuccessCriteriaMet") && complete && !met, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
	refuse(met && failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions")
	refuse(met && target, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")
	for _, name := range []string{"Failed", "Complete", "FailureTarget"} {
		refuse(was.conditions[name] && !is.conditions[name], "cannot disable the terminal "+name+"=True condition")
	}
	refuse(was.conditions["SuccessCriteriaMet"] && !met, "cannot disable the SuccessCriteriaMet=True condition")
	refuse(was.conditions["Complete"] && !was.conditions["SuccessCriteriaMet"] && met, "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")
	return errs
}

func jobTimes(is, was jobState, spec object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	changed := func(name string) bool { return !reflect.DeepEqual(is.status[name], was.status[name]) }
	start, completion := at.Child("startTime"), at.Child("completionTime")
	started, isStarted := is.time("startTime")
	completed, isCompleted := is.time("completionTime")
	if changed("completionTime") || is.conditions["Complete"] != was.conditions["Complete"] {
		if isCompleted && !is.conditions["Complete"] {
			errs = append(errs, field.Invalid(completion, is.status["completionTime"], "cannot set completionTime when there is no Complete=True condition"))
		}
		if !isCompleted && is.conditions["Complete"] {
			errs = append(errs, field.Required(completion, "completionTime is required for Complete jobs"))
		}
	}
	if (changed("startTime") || changed("completionTime")) && isStarted && isCompleted && completed.Before(started) {
		errs = append(errs, field.Invalid(completion, is.status["completionTime"], "must be equal to or after `startTime`"))
	}
	suspended, _ := spec["suspend"].(bool)
	if !(suspended && spec["completions"] == int64(0)) && (is.finished() != was.finished() || changed("startTime")) && !isStarted && is.finished() {
		errs = append(errs, field.Required(start, "startTime is required for finished job"))
	}
	if _, before := was.time("completionTime"); isCompleted && before && changed("completionTime") {
		errs = append(errs, field.Invalid(completion, is.status["completionTime"], fieldImmutable))
	}
	resumes := was.conditions["Suspended"] && is.suspended == "False"
	if _, before := was.time("startTime"); before && changed("startTime") && !suspended && !resumes {
		errs = append(errs, field.Invalid(start, is.status["startTime"], "field is immutable for unsuspended job once set"))
	}
	return errs
}

func jobCounters(is, was jobState, spec object, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	changed := func(name string) bool { return !reflect.DeepEqual(is.status[name], was.status[name]) }
	finishes := is.finished() != was.finished()
	for _, name := range []string{"active", "terminating"} {
		if n := is.number(name); n > 0 && is.finished() && (finishes || changed(name)) {
			errs = append(errs, field.Invalid(at.Child(name), n, name+">0 is invalid for finished job"))
		}
	}
	if is.status["ready"] != nil && is.number("ready") > is.number("active") && (changed("ready") || changed("active")) {
		errs = append(errs, field.Invalid(at.Child("ready"), is.number("ready"), "cannot set more ready pods than active"))
	}
	pods := child(is.status, "uncountedTerminatedPods")
	if !hollow(pods) && is.finished() && (finishes || changed("uncountedTerminatedPods")) {
		errs = append(errs, field.Invalid(at.Child("uncountedTerminatedPods"), pods, "must be empty for finished job"))
	}
	if is.number("failed") < was.number("failed") {
		errs = append(errs, field.Invalid(at.Child("failed"), is.number("failed"), "cannot decrease the failed counter"))
	}
	indexed := spec["completionMode"] == "Indexed"
	if elastic := indexed && reflect.DeepEqual(spec["completions"], spec["parallelism"]); !elastic && is.number("succeeded") < was.number("succeeded") {
		errs = append(errs, field.Invalid(at.Child("succeeded"), is.number("succeeded"), "cannot decrease the succeeded counter"))
	}
	if text, _ := is.status["completedIndexes"].(string); changed("completedIndexes") && text != "" && !indexed {
		errs = append(errs, field.Invalid(at.Child("completedIndexes"), text, "cannot set non-empty completedIndexes when non-indexed completion mode"))
	}
	if text, ok := is.status["failedIndexes"].(string); changed("failedIndexes") && ok && spec["backoffLimitPerIndex"] == nil {
		errs = append(errs, field.Invalid(at.Child("failedIndexes"), text, "cannot set non-null failedIndexes when backoffLimitPerIndex is null"))
	}
	return errs
}
