// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

var (
	database = journal.Object{Group: "example.com", Kind: "Database", Namespace: "shop", Name: "db"}
	secret   = journal.Object{Kind: "Secret", Namespace: "shop", Name: "db-password"}
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

// outcomes are how steps and reconciles of the stories end.
var outcomes = map[string]journal.Outcome{
	"": {}, "in 1s": {RequeueAfter: time.Second},
	"waits": {Waits: []journal.Wait{{For: "Secret shop/db-password"}}}, "quota": {Waits: []journal.Wait{{For: "a quota"}}},
	"broken":  {Err: errors.New("connection refused"), Class: string(failure.ClassTransient)},
	"outside": {Err: errOutside, Class: string(failure.ClassForbidden), Remedy: "ask an administrator"},
	"both":    {Err: errors.Join(fmt.Errorf("%s: connection refused", "Read"), errOutside), Class: string(failure.ClassForbidden)},
}

var errOutside = errors.New("writing the status: forbidden")

// said are the events of the stories that have no parameters.
var said = map[string]journal.Event{
	"created":           journal.Started{Causes: []journal.Cause{{Kind: journal.CauseOwnChange, Verb: "created", Times: 1}}},
	"timer":             journal.Started{Causes: []journal.Cause{{Kind: journal.CauseTimer, Times: 1}}},
	"deleting":          journal.Started{Deleting: true},
	"gated":             journal.Gated{Reason: "Paused", Message: "by its annotation"},
	"hot loop":          journal.HotLoop{Reconciles: 6, Within: time.Minute, Managers: []string{"helm"}, Slowed: 3 * time.Minute},
	"unwatched Read":    journal.Unwatched{Step: "Read", Object: secret},
	"triggered foreign": journal.Triggered{Cause: journal.Cause{Kind: journal.CauseForeignChange, Verb: "updated", Object: secret}},
	"triggered own":     journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange, Verb: "updated", Object: database}},
	"triggered created": journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange, Verb: "created"}},
}

// eventOf reads an event of a story.
func eventOf(t *testing.T, text string) journal.Event {
	t.Helper()
	if e, ok := said[text]; ok {
		return e
	}
	words := append(strings.Fields(text), "", "", "")
	phase := journal.Phase(words[2])
	outcome := func(from int) journal.Outcome {
		o, ok := outcomes[strings.TrimSpace(strings.Join(words[from:], " "))]
		if !ok {
			t.Fatalf("%s: no such outcome", text)
		}
		return o
	}
	step, name, _ := strings.Cut(words[2], "/")
	switch words[0] {
	case "began":
		return journal.StepBegan{Step: words[1], Phase: phase}
	case "ended":
		return journal.StepEnded{Step: words[1], Phase: phase, Outcome: outcome(3)}
	case "skipped":
		return journal.StepSkipped{Step: words[1], After: words[2]}
	case "finished":
		return journal.Finished{Result: journal.Result(words[1]), Outcome: outcome(2)}
	case "requeued":
		after, err := time.ParseDuration(words[1])
		must(t, err)
		failures, err := strconv.Atoi(words[3])
		must(t, err)
		return journal.Requeued{After: after, Why: words[2], Failures: failures}
	}
	switch words[0] + " " + words[1] {
	case "action began":
		return journal.ActionBegan{Step: step, Action: name}
	case "action ended":
		return journal.ActionEnded{Step: step, Action: name, Outcome: outcome(3)}
	case "action blocked":
		return journal.ActionBlocked{Step: step, Action: name, By: words[3:4]}
	}
	t.Fatalf("%s: no such event", text)
	return nil
}

// The report has the last value of each field, without what is over.
func TestFromEntries(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/reading.txtar")
	must(t, err)
	for i := 0; i+1 < len(archive.Files); i += 2 {
		var story []minute
		for line := range strings.Lines(string(archive.Files[i].Data)) {
			var m minute
			for text := range strings.SplitSeq(strings.TrimSpace(line), ", ") {
				m = append(m, eventOf(t, text))
			}
			story = append(story, m)
		}
		got := read(story...)
		got.Runs = nil // TestRuns is about them
		archive.Files[i+1].Data, err = yaml.Marshal(got)
		must(t, err)
	}
	golden(t, "testdata/reading.txtar", string(txtar.Format(archive)))
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
	entry := func(controller, text string) journal.Entry {
		return journal.Entry{Time: at(0), Controller: controller, Object: database, Event: eventOf(t, text)}
	}
	report := explanation.FromEntries(database, []journal.Entry{
		entry("quota", "timer"), entry("database", "created"), entry("quota", "ended Count Do waits"), entry("database", "ended Read Do"),
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
