// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

var (
	database = journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: "db"}
	secret   = journal.Object{Kind: "Secret", Namespace: "shop", Name: "db-password"}
	created  = journal.Started{Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Verb: "created", Times: 1}}}
	begun    = journal.Started{Causes: []journal.Cause{{Kind: journal.CauseTimer, Times: 1}}}
	waits    = journal.Outcome{Waits: []journal.Wait{{For: "Secret shop/db-password"}}}
	broken   = journal.Outcome{Err: errors.New("connection refused"), Class: string(failure.ClassTransient)}
	epoch    = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

// at is a time of the tables below.
func at(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }

// minute is what happens in a minute of a story.
type minute []journal.Event

// read makes a report of a story of a controller, a minute each.
func read(minutes ...minute) explanation.Controller {
	var entries []journal.Entry
	for i, events := range minutes {
		for _, e := range events {
			entries = append(entries, journal.Entry{Time: at(i), Controller: "database", Object: database, Event: e})
		}
	}
	return explanation.FromEntries(database, entries).Controllers[0]
}

func ended(step string, o journal.Outcome) journal.Event {
	return journal.StepEnded{Step: step, Phase: journal.PhaseDo, Outcome: o}
}

func began(step string) journal.Event { return journal.StepBegan{Step: step, Phase: journal.PhaseDo} }

func finished(r journal.Result, o journal.Outcome) journal.Event {
	return journal.Finished{Result: r, Outcome: o}
}

// waiting is a reconcile in which a step waits.
func waiting(begin journal.Started) minute {
	return minute{begin, began("Read"), ended("Read", waits), finished(journal.ResultWaiting, waits)}
}

func TestSteps(t *testing.T) {
	wait := []journal.Wait{{For: "Secret shop/db-password"}}
	waitsSince := func(minutes int) explanation.Step {
		return explanation.Step{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(minutes), Waits: wait}
	}
	passed := minute{begun, began("Read"), ended("Read", journal.Outcome{}), finished(journal.ResultDone, journal.Outcome{})}
	for _, test := range []struct {
		name  string
		story []minute
		want  []explanation.Step
	}{
		{"since goes over reconciles", []minute{waiting(created), waiting(begun), waiting(begun)}, []explanation.Step{waitsSince(0)}},
		{"since begins anew after a break", []minute{waiting(created), passed, waiting(begun)}, []explanation.Step{waitsSince(2)}},
		{
			"since begins anew with another object of the name",
			[]minute{waiting(created), {begun, finished(journal.ResultGone, journal.Outcome{})}, waiting(begun)},
			[]explanation.Step{waitsSince(2)},
		},
		{"what was before is not known", []minute{waiting(begun), waiting(begun)}, []explanation.Step{
			{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(0), OrLonger: true, Waits: wait},
		}},
		{"what began later is known", []minute{passed, waiting(begun)}, []explanation.Step{waitsSince(1)}},
		{
			"entries that begin in the middle of a reconcile",
			[]minute{{finished(journal.ResultWaiting, waits)}, waiting(begun)},
			[]explanation.Step{{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(1), OrLonger: true, Waits: wait}},
		},
		{
			"entries that begin in the middle of a step",
			[]minute{{ended("Write", waits), finished(journal.ResultWaiting, waits)}, waiting(begun)},
			[]explanation.Step{{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(1), OrLonger: true, Waits: wait}},
		},
		{
			"the cleanup waits for the same",
			[]minute{waiting(created), {
				journal.Started{Deleting: true}, journal.StepEnded{Step: "Read", Phase: journal.PhaseCleanup, Outcome: waits}, finished(journal.ResultWaiting, waits),
			}},
			[]explanation.Step{{Name: "Read", Phase: journal.PhaseCleanup, State: explanation.StateWaiting, Since: at(1), Waits: wait}},
		},
		{"a wait for something else", []minute{
			{created, began("Read"), ended("Read", journal.Outcome{Waits: []journal.Wait{{For: "a quota"}}}), finished(journal.ResultWaiting, journal.Outcome{})},
			waiting(begun),
		}, []explanation.Step{waitsSince(1)}},
		{"stale and converged say nothing about steps", []minute{
			waiting(created), {begun, finished(journal.ResultStale, journal.Outcome{})}, {begun, finished(journal.ResultConverged, journal.Outcome{})},
		}, []explanation.Step{waitsSince(0)}},
		{"post does not hide what failed", []minute{{
			created, began("Read"), ended("Read", waits),
			journal.StepBegan{Step: "Read", Phase: journal.PhasePost}, journal.StepEnded{Step: "Read", Phase: journal.PhasePost}, finished(journal.ResultWaiting, waits),
		}}, []explanation.Step{waitsSince(0)}},
		{"post of a step that was not reached", []minute{{
			created, began("Read"), ended("Read", waits), journal.StepSkipped{Step: "Write", After: "Read"},
			journal.StepBegan{Step: "Write", Phase: journal.PhasePost}, journal.StepEnded{Step: "Write", Phase: journal.PhasePost}, finished(journal.ResultWaiting, waits),
		}}, []explanation.Step{waitsSince(0), {Name: "Write", State: explanation.StateNotReached, Since: at(0), By: []string{"Read"}}}},
		{"post that fails, too", []minute{{
			created, began("Read"), ended("Read", waits),
			journal.StepEnded{Step: "Read", Phase: journal.PhasePost, Outcome: broken}, finished(journal.ResultFailed, broken),
		}}, []explanation.Step{waitsSince(0)}},
		{"post that fails", []minute{{
			created, began("Read"), ended("Read", journal.Outcome{}), journal.StepBegan{Step: "Read", Phase: journal.PhasePost},
			journal.StepEnded{Step: "Read", Phase: journal.PhasePost, Outcome: broken}, finished(journal.ResultFailed, broken),
		}}, []explanation.Step{{
			Name: "Read", Phase: journal.PhasePost, State: explanation.StateFailed, Since: at(0), Error: "connection refused",
			Class: "TemporaryError", Remedy: failure.RemedyOf(failure.ClassTransient),
		}}},
		{"actions in a step", []minute{{
			created, began("Run"), journal.ActionBegan{Step: "Run", Action: "A"}, journal.ActionEnded{Step: "Run", Action: "A", Outcome: waits},
			journal.ActionBlocked{Step: "Run", Action: "B", By: []string{"A"}}, ended("Run", waits), finished(journal.ResultWaiting, waits),
		}}, []explanation.Step{{
			Name: "Run", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(0), Waits: wait, Actions: []explanation.Step{
				{Name: "A", State: explanation.StateWaiting, Since: at(0), Waits: wait},
				{Name: "B", State: explanation.StateBlocked, Since: at(0), By: []string{"A"}},
			},
		}}},
		{"a reconcile that runs", []minute{
			{created, began("Read"), ended("Read", journal.Outcome{}), began("Write"), ended("Write", broken), finished(journal.ResultFailed, broken)},
			{begun, began("Read")},
		}, []explanation.Step{
			{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateDone, Since: at(0), Again: true},
			{
				Name: "Write", Phase: journal.PhaseDo, State: explanation.StateFailed, Since: at(0), Error: "connection refused",
				Class: "TemporaryError", Remedy: failure.RemedyOf(failure.ClassTransient),
			},
		}},
		{"the first reconcile runs", []minute{{created, began("Read")}}, []explanation.Step{
			{Name: "Read", Phase: journal.PhaseDo, State: explanation.StateRunning, Since: at(0)},
		}},
		{"a condition that does not hold", []minute{{created, journal.StepSkipped{Step: "Read"}, finished(journal.ResultDone, journal.Outcome{})}}, []explanation.Step{
			{Name: "Read", State: explanation.StateNotNeeded, Since: at(0)},
		}},
		{"in a group another than the last keeps the rest from being run", []minute{{
			created, began("A"), ended("A", waits), began("B"), ended("B", journal.Outcome{}),
			journal.StepSkipped{Step: "C", After: "B"}, finished(journal.ResultWaiting, waits),
		}}, []explanation.Step{
			{Name: "A", Phase: journal.PhaseDo, State: explanation.StateWaiting, Since: at(0), Waits: wait},
			{Name: "B", Phase: journal.PhaseDo, State: explanation.StateDone, Since: at(0)},
			{Name: "C", State: explanation.StateNotReached, Since: at(0), By: []string{"A"}},
		}},
		{"a requeue", []minute{{
			created, began("A"), ended("A", journal.Outcome{RequeueAfter: time.Second}), journal.StepSkipped{Step: "B", After: "A"},
			finished(journal.ResultDone, journal.Outcome{RequeueAfter: time.Second}),
		}}, []explanation.Step{
			{Name: "A", Phase: journal.PhaseDo, State: explanation.StateRequeued, Since: at(0), After: time.Second},
			{Name: "B", State: explanation.StateNotReached, Since: at(0), By: []string{"A"}},
		}},
		{"a requeue in a cleanup", []minute{{
			created, finished(journal.ResultDone, journal.Outcome{}),
		}, {
			journal.Started{Deleting: true}, journal.StepEnded{Step: "A", Phase: journal.PhaseCleanup, Outcome: journal.Outcome{RequeueAfter: time.Second}},
			finished(journal.ResultWaiting, journal.Outcome{RequeueAfter: time.Second}),
		}}, []explanation.Step{{Name: "A", Phase: journal.PhaseCleanup, State: explanation.StateRequeued, Since: at(1), After: time.Second}}},
		{"a time after the last step is no requeue", []minute{{
			created, began("A"), ended("A", journal.Outcome{RequeueAfter: time.Second}), finished(journal.ResultDone, journal.Outcome{RequeueAfter: time.Second}),
		}}, []explanation.Step{{Name: "A", Phase: journal.PhaseDo, State: explanation.StateDone, Since: at(0), After: time.Second}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, read(test.story...).Steps); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Everything but the steps: the last value of each field, without what is over.
func TestController(t *testing.T) {
	fails := func(after time.Duration, failures int) minute {
		return minute{
			begun, began("Read"), ended("Read", broken),
			journal.Requeued{After: after, Why: "backoff", Failures: failures}, finished(journal.ResultFailed, broken),
		}
	}
	outside := journal.Outcome{Err: errors.New("writing the status: forbidden"), Class: string(failure.ClassForbidden), Remedy: "ask an administrator"}
	both := journal.Outcome{Err: errors.Join(errors.New("Read: connection refused"), outside.Err), Class: string(failure.ClassForbidden)}
	hot := journal.HotLoop{Reconciles: 6, Within: time.Minute, Managers: []string{"helm"}, Slowed: 3 * time.Minute}
	fine := minute{begun, began("Read"), ended("Read", journal.Outcome{}), finished(journal.ResultDone, journal.Outcome{})}
	pausedFor := minute{begun, journal.Gated{Reason: "Paused", Message: "by its annotation"}, finished(journal.ResultPaused, journal.Outcome{})}
	for _, test := range []struct {
		name  string
		story []minute
		want  explanation.Controller
	}{
		{"a backoff", []minute{fails(time.Minute, 1), fails(2*time.Minute, 2)}, explanation.Controller{Result: journal.ResultFailed, Next: at(3), Why: "backoff", Failures: 2}},
		{"a backoff is over after a success", []minute{fails(time.Hour, 1), fine}, explanation.Controller{Result: journal.ResultDone}},
		{
			"a time stays planned while nothing has changed",
			[]minute{
				{begun, journal.Requeued{After: time.Hour, Why: "time"}, finished(journal.ResultDone, journal.Outcome{})},
				{begun, finished(journal.ResultConverged, journal.Outcome{})},
			},
			explanation.Controller{Result: journal.ResultConverged, Next: at(60), Why: "time"},
		},
		{
			"a failure before the steps", []minute{{begun, finished(journal.ResultFailed, outside)}},
			explanation.Controller{Result: journal.ResultFailed, Failure: "writing the status: forbidden", Class: "Forbidden", Remedy: "ask an administrator"},
		},
		{
			"a failure beside one of a step", []minute{{begun, began("Read"), ended("Read", broken), finished(journal.ResultFailed, both)}},
			explanation.Controller{Result: journal.ResultFailed, Failure: "writing the status: forbidden", Class: "Forbidden"},
		},
		{
			"it stays while the cache is stale", []minute{{begun, finished(journal.ResultFailed, outside)}, {begun, finished(journal.ResultStale, journal.Outcome{})}},
			explanation.Controller{Result: journal.ResultStale, Failure: "writing the status: forbidden", Class: "Forbidden", Remedy: "ask an administrator"},
		},
		{"it goes", []minute{{begun, finished(journal.ResultFailed, outside)}, fine}, explanation.Controller{Result: journal.ResultDone}},
		{"a pause", []minute{pausedFor}, explanation.Controller{Result: journal.ResultPaused, Gated: "by its annotation"}},
		{"a pause that is over", []minute{pausedFor, fine}, explanation.Controller{Result: journal.ResultDone}},
		{
			"a hot loop, also when the reconcile fails", []minute{append(minute{begun, hot}, fails(time.Minute, 1)[1:]...)},
			explanation.Controller{Result: journal.ResultFailed, Next: at(1), Why: "backoff", Failures: 1, HotLoop: &explanation.HotLoop{What: hot.String(), Managers: []string{"helm"}}},
		},
		{"a hot loop that is over", []minute{{begun, hot, finished(journal.ResultDone, journal.Outcome{})}, fine, fine, fine}, explanation.Controller{Result: journal.ResultDone}},
		{
			"what is in the queue, counted", []minute{fine, {
				journal.Triggered{Cause: journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated", Object: secret}},
				journal.Triggered{Cause: journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated", Object: secret}},
				journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Object: database}},
			}},
			explanation.Controller{Result: journal.ResultDone, Queued: []string{"Secret shop/db-password was updated 2 times", "the object was updated"}},
		},
		{
			"what was in the queue", []minute{{journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange, Verb: "created"}}}, fine},
			explanation.Controller{Result: journal.ResultDone},
		},
		{
			"a kind that nothing watches, also when nothing has changed since",
			[]minute{
				{begun, began("Read"), ended("Read", journal.Outcome{}), journal.Unwatched{Step: "Read", Object: secret}, finished(journal.ResultDone, journal.Outcome{})},
				{begun, finished(journal.ResultConverged, journal.Outcome{})},
			},
			explanation.Controller{Result: journal.ResultConverged, Unwatched: []explanation.Unwatched{{Step: "Read", Object: secret}}},
		},
		{
			"a kind that is not read any more",
			[]minute{{begun, began("Read"), ended("Read", journal.Outcome{}), journal.Unwatched{Step: "Read", Object: secret}, finished(journal.ResultDone, journal.Outcome{})}, fine},
			explanation.Controller{Result: journal.ResultDone},
		},
		{"a reconcile that runs", []minute{fine, {begun}}, explanation.Controller{Result: journal.ResultDone, Running: at(1)}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.want.Name = "database"
			if diff := cmp.Diff(test.want, read(test.story...), cmpopts.IgnoreFields(explanation.Controller{}, "Steps", "Runs")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What a set writes to each of its objects is left out of what was written.
func TestWritesOfSets(t *testing.T) {
	for want, fields := range map[string][]string{
		"apply Secret shop/password (.data[key])":                            {".data[key]", ".metadata.annotations[apply.ctrlkit.dev/hash]", ".metadata.labels[apply.ctrlkit.dev/set]", ".metadata.ownerReferences"},
		"apply Secret shop/password":                                         {".metadata.annotations[apply.ctrlkit.dev/hash]", ".metadata.ownerReferences"},
		"apply Secret shop/password (.data[key], .metadata.ownerReferences)": {".data[key]", ".metadata.ownerReferences"},
	} {
		runs := read(minute{journal.Started{}, journal.Wrote{Verb: "apply", Object: journal.Object{Kind: "Secret", Namespace: "shop", Name: "password"}, Fields: fields}}).Runs
		if got := runs[0].Writes[0].What; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestRuns(t *testing.T) {
	wrote := journal.Wrote{Verb: "patch", Object: database, Subresource: "status", Fields: []string{".status.conditions"}}
	refused := journal.Wrote{Verb: "create", Object: secret, Err: errors.New("exists")}
	done := func(cause journal.Cause, events ...journal.Event) minute {
		m := append(minute{journal.Started{Causes: []journal.Cause{cause}}}, events...)
		return append(m, journal.Finished{Result: journal.ResultDone, Duration: time.Second})
	}
	story := []minute{done(journal.Cause{Kind: journal.CauseOwnChange, Verb: "created"}, refused)}
	for _, kind := range []journal.CauseKind{
		journal.CauseOwnWrite, journal.CauseChildChange, journal.CauseTimer, journal.CauseBackoff, journal.CauseStart, journal.CauseUnknown, journal.CauseOwnChange,
	} {
		story = append(story, done(journal.Cause{Kind: kind, Times: 1}))
	}
	story = append(story, done(journal.Cause{Kind: journal.CauseChildChange, Verb: "deleted", Object: secret, Times: 3}, wrote))
	var causes []string
	runs := read(story...).Runs
	for _, r := range runs {
		causes = append(causes, r.Causes...)
	}
	want := []string{
		"the operator's own write", "child change", "a scheduled requeue", "a retry after a failure", "the first reconcile in this process",
		"something that was not recorded", "the object was changed", "Secret shop/db-password was deleted 3 times",
	}
	if diff := cmp.Diff(want, causes); diff != "" { // the first is one too many
		t.Error(diff)
	}
	last := explanation.Run{
		Began: at(8), Duration: time.Second, Result: journal.ResultDone, Causes: want[7:],
		Writes: []explanation.Write{{What: "patch status of Database shop/db (.status.conditions)"}},
	}
	if diff := cmp.Diff(last, runs[7]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]explanation.Write{{What: "create Secret shop/db-password", Error: "exists"}}, read(story[0]).Runs[0].Writes); diff != "" {
		t.Error(diff)
	}
}

// Several controllers may keep one object.
func TestControllersAreSortedAndApart(t *testing.T) {
	entry := func(controller string, e journal.Event) journal.Entry {
		return journal.Entry{Time: at(0), Controller: controller, Object: database, Event: e}
	}
	report := explanation.FromEntries(database, []journal.Entry{
		entry("quota", begun), entry("database", created), entry("quota", ended("Count", waits)), entry("database", ended("Read", journal.Outcome{})),
	})
	var got []string
	for _, c := range report.Controllers {
		got = append(got, c.Name+" "+c.Steps[0].Name+" "+c.Steps[0].State)
	}
	if diff := cmp.Diff([]string{"database Read done", "quota Count waiting"}, got); diff != "" {
		t.Error(diff)
	}
	if want := (journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: "db"}); report.Object != want {
		t.Errorf("object %v, want %v", report.Object, want)
	}
}
