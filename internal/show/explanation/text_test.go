// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// hostile are texts that act on a terminal, or mislead the reader.
var hostile = []string{
	"\x1b[2J\x1b]0;title\a", "\u009b31m", "\u202egnp.exe", "\u2066x\u2069", "\r\x1b[1A", "\x00\x7f\b", "\u2028", "\xff\xfe", "\U000e0041", "a\nb\tc\vd\fe\u0085f", "\ufeff", "fine, größer, 数据库, 🙂",
}

func conditionOf(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": at(0).Format(time.RFC3339)}
}

// everywhere returns an explanation that has text in every place that comes from the cluster or the
// operator.
func everywhere(text string) *explanation.Explanation {
	step := explanation.Step{
		Name: text, State: explanation.StateFailed, Error: text, Class: text, Remedy: text, Since: at(0), By: []string{text},
		Waits: []journal.Wait{{For: text}}, Actions: []explanation.Step{{Name: text, State: explanation.StateBlocked, By: []string{text}}},
	}
	waiting, odd := step, step
	waiting.State, waiting.Actions = explanation.StateWaiting, nil
	odd.State, odd.Actions = text, nil
	return &explanation.Explanation{
		Object: &unstructured.Unstructured{Object: map[string]any{
			"kind": text,
			"metadata": map[string]any{
				"name": text, "namespace": text, "deletionTimestamp": at(0).Format(time.RFC3339), "finalizers": []any{text, "x"},
				"annotations": map[string]any{"ctrlkit.dev/paused": text},
			},
			"status": map[string]any{"conditions": []any{conditionOf("Ready", "False", text, text), conditionOf(text, text, text, text), conditionOf("Stalled", "True", text, text)}},
		}},
		Resource: text,
		Report: &explanation.Report{Object: journal.Object{Kind: text, Name: text}, Controllers: []explanation.Controller{{
			Name: text, Finalizer: "y", Result: journal.Result(text), Steps: []explanation.Step{step, waiting, odd}, Failure: text, Class: text, Remedy: text,
			HotLoop: &explanation.HotLoop{What: text, Managers: []string{text}}, Queued: []string{text},
			Unwatched: []explanation.Unwatched{{Step: text, Object: journal.Object{Kind: text, Namespace: text, Name: text}}, {Object: journal.Object{Kind: text, Namespace: text}}},
			Runs:      []explanation.Run{{Began: at(0), Result: journal.Result(text), Causes: []string{text}, Writes: []explanation.Write{{What: text, Error: text}}}},
		}}},
		Now: at(1),
	}
}

// noControl returns an error if a text does anything to a terminal but begin new lines.
func noControl(text string) error {
	for i, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			return fmt.Errorf("%U at %d of %q", r, i, text)
		}
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("%q is no text", text)
	}
	return nil
}

// Nothing that comes from the cluster moves the cursor, changes colors, begins a line or reverses
// the direction of writing.
func TestWriteHasNoControlCharacters(t *testing.T) {
	for _, text := range hostile {
		for _, x := range []*explanation.Explanation{everywhere(text), {NoReport: text}, {Object: everywhere(text).Object, Resource: text, NoReport: text}} {
			got := textOf(t, x)
			if err := noControl(got); err != nil {
				t.Errorf("%q: %v", text, err)
			}
			if a, b := strings.Count(got, "\n"), strings.Count(textOf(t, everywhere("plain")), "\n"); x.Report != nil && a > b {
				t.Errorf("%q makes %d lines of %d:\n%s", text, a, b, got)
			}
		}
	}
	if got := textOf(t, everywhere("a\x1b[31mb\u202ec")); !strings.Contains(got, `a\x1b[31mb\u202ec`) {
		t.Errorf("it hides what was there:\n%s", got)
	}
	if got := textOf(t, everywhere("größer, 数据库, 🙂")); !strings.Contains(got, "größer, 数据库, 🙂") {
		t.Errorf("it changes what can be read:\n%s", got)
	}
}

func TestWriteIsBoundedForAnyText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.Rune()).Draw(t, "text") + rapid.SampledFrom(hostile).Draw(t, "hostile")
		var b strings.Builder
		if err := everywhere(text).Write(&b); err != nil {
			t.Fatal(err)
		}
		if err := noControl(b.String()); err != nil {
			t.Fatal(err)
		}
	})
}

func many[T any](n int, each func(i int) T) []T {
	all := make([]T, n)
	for i := range all {
		all[i] = each(i)
	}
	return all
}

// However much there is, what matters is shown, and how much is left out.
func TestWriteIsBounded(t *testing.T) {
	conditions := many(400, func(i int) any { return conditionOf(fmt.Sprint("Part", i), "True", "Fine", "fine") })
	conditions[317] = conditionOf("Disk", "False", "DiskFull", "the disk of db-3 is full")
	conditions = append(conditions, conditionOf("Ready", "False", "DiskFull", "the disk of db-3 is full"), conditionOf("Stalled", "True", "Long", strings.Repeat("long ", 100_000)))
	finalizers := many(3000, func(i int) any { return fmt.Sprint("x.io/f", i) })
	finalizers[2000] = "ours.io/a"
	actions := many(500, func(i int) explanation.Step {
		return explanation.Step{Name: fmt.Sprint("Action", i), State: explanation.StateDone, Since: at(0)}
	})
	actions[444] = explanation.Step{Name: "Broken", State: explanation.StateFailed, Since: at(0), Error: "it broke", Class: "TransientError", Remedy: "wait"}
	waits := many(500, func(i int) journal.Wait { return journal.Wait{For: fmt.Sprint("thing ", i)} })
	writes := many(200, func(i int) explanation.Write { return explanation.Write{What: fmt.Sprint("create Secret ", i)} })
	unwatched := many(300, func(i int) explanation.Unwatched {
		return explanation.Unwatched{Step: "Wait", Object: journal.Object{Kind: fmt.Sprint("Kind", i), Name: "x"}}
	})
	obj := zone("False", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339), "finalizers": finalizers})
	obj.Object["status"] = map[string]any{"conditions": conditions}
	x := &explanation.Explanation{Object: obj, Resource: "zones.example.com", Now: at(1), Report: reportOf(explanation.Controller{
		Name: "a", Finalizer: "ours.io/a", Unwatched: unwatched,
		Steps: []explanation.Step{{Name: "Run", State: explanation.StateFailed, Since: at(0), Error: "it broke", Actions: actions}, {Name: "Wait", State: explanation.StateWaiting, Since: at(0), Waits: waits}},
		Runs:  []explanation.Run{{Began: at(0), Result: journal.ResultFailed, Writes: writes}},
	})}
	text := textOf(t, x)
	if lines := strings.Count(text, "\n"); lines > 120 || len(text) > 32<<10 {
		t.Errorf("it takes %d lines and %d bytes", lines, len(text))
	}
	for _, want := range []string{
		"  DiskFull: the disk of db-3 is full\n", "\n  Ready     False ", "\n  Stalled   True ", "\n  Disk      False ",
		"  … and 382 more, all True\n",
		"\n  ours.io/a   of this operator", "  … and 2990 more\n",
		"    ✗ Broken     fails, for 60s: it broke\n", "    … and 470 more, all done\n",
		"  - Broken fails (TransientError): wait.\n", "  - Wait waits for thing 0. Check what delays it;", "  - It is kept by finalizer x.io/f3,", "  … and 3492 more\n",
		"  ! Wait reads Kind4 x, which nothing watches", "  … and 295 more\n",
		"wrote: create Secret 9\n", "… and 190 more\n",
		"more characters)", "\nNot everything is shown; -o json shows it\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// A few things are all shown, and there is no word about others.
func TestWriteLeavesOutNothingOfLittle(t *testing.T) {
	if text := textOf(t, everywhere("plain")); strings.Contains(text, "… and") || strings.Contains(text, "Not everything") {
		t.Error(text)
	}
}

// A command that is pasted does what it says, whatever the name of the object.
func TestCommandsAreQuoted(t *testing.T) {
	for _, name := range []string{"db", "system:node", "a b", "$(touch pwned)", "it's", `"; touch pwned; "`, "-n", "größer"} {
		obj := zone("False", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339), "finalizers": []any{"x.io/a"}, "annotations": map[string]any{"ctrlkit.dev/paused": ""}})
		obj.SetName(name)
		text := textOf(t, &explanation.Explanation{Object: obj, Resource: "roles.example.com", Report: reportOf(explanation.Controller{}), Now: at(1)})
		commands := 0
		for line := range strings.Lines(text) {
			command, ok := strings.CutPrefix(strings.TrimSpace(line), "kubectl ")
			if !ok {
				continue
			}
			commands++
			shell := exec.CommandContext(t.Context(), "sh", "-c", `show() { printf '%s\n' "$3"; }; show `+command)
			shell.Dir = t.TempDir() // for what must not happen
			output, err := shell.Output()
			if want := name + "\n"; err != nil || string(output) != want {
				t.Errorf("of %q the shell makes %q (%v): %s", name, output, err, command)
			}
		}
		if commands != 2 {
			t.Errorf("%d commands in\n%s", commands, text)
		}
	}
}
