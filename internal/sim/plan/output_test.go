// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
)

// written is a plan that has everything.
func written() *plan.Plan {
	return &plan.Plan{
		AtStart: []plan.Change{{Action: plan.Create, By: plan.Operator, Kind: "Service", Namespace: "a", Name: "web", Owner: "Website/web"}},
		Changes: []plan.Change{
			{Action: plan.Update, By: plan.User, Group: "example.com", Kind: "Website", Namespace: "a", Name: "web", Fields: []plan.Field{{Path: "spec.text", From: "x", To: "```\n# no heading\n```"}}},
			{
				Action: plan.Update, By: plan.Operator, Group: "apps", Kind: "Deployment", Namespace: "a", Name: "web", Owner: "Website/web", Restart: true, Repeats: 7,
				Fields: []plan.Field{{Path: "spec.template.spec.containers[web].image", From: "web:1", To: "web:2"}, {Path: "status.replicas", From: int64(1)}},
			},
			{Action: plan.Pending, By: plan.Operator, Kind: "ConfigMap", Namespace: "a", Name: "old", Waits: []string{"example.com/x"}},
			{Action: plan.Delete, By: plan.Collector, Kind: "Secret", Namespace: "a", Name: "gone"},
			{Action: plan.Replace, By: plan.Operator, Kind: "Job", Group: "batch", Namespace: "a", Name: "again"},
			{Action: plan.Create, By: plan.Others, Kind: "Pod", Namespace: "a", Name: "web-x"},
		},
		Unknown: []string{"cannot read nodes: no"}, Assumptions: []string{"webhooks are not asked"}, Outside: []string{"example.com"}, Copied: 10, Requests: 3,
	}
}

// Programs read the same plan that was written, and each of its fields is documented.
func TestJSON(t *testing.T) {
	data, err := json.Marshal(written())
	if err != nil {
		t.Fatal(err)
	}
	read := &plan.Plan{}
	if err := json.Unmarshal(data, read); err != nil {
		t.Fatal(err)
	}
	want := written()
	want.Changes[1].Fields[1].From = float64(1)
	if diff := cmp.Diff(want, read); diff != "" {
		t.Errorf("what was read (-want +got):\n%s", diff)
	}
	manual, err := os.ReadFile("../../../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	for _, name := range names(content) {
		if !strings.Contains(string(manual), "`"+name+"`") {
			t.Errorf("docs/operate.md does not have the field %s", name)
		}
	}
	if data, err = json.Marshal(&plan.Plan{}); err != nil || !strings.Contains(string(data), `"atStart":[],"changes":[]`) {
		t.Errorf("an empty plan is %s, error %v: want empty lists", data, err)
	}
}

// names returns the names of all fields of a JSON value.
func names(value any) []string {
	var all []string
	switch v := value.(type) {
	case map[string]any:
		for name, child := range v {
			all = append(append(all, name), names(child)...)
		}
	case []any:
		for _, child := range v {
			all = append(all, names(child)...)
		}
	}
	return all
}

// Markdown has one heading and one block, which no value ends.
func TestMarkdown(t *testing.T) {
	var text strings.Builder
	if err := written().Write(&text, plan.Style{Markdown: true, Colors: true}); err != nil {
		t.Fatal(err)
	}
	var headings, signs []string
	fences := 0
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimLeft(line, " "), "```") && !strings.HasPrefix(line, "    "):
			fences++
		case fences != 1 && strings.HasPrefix(line, "#"):
			headings = append(headings, line)
		case fences == 1 && line != "" && !strings.HasPrefix(line, " ") && !strings.HasSuffix(line, ":"):
			signs = append(signs, strings.Fields(line)[0])
		}
	}
	if len(headings) != 1 || !strings.HasPrefix(headings[0], "### Plan: ") || fences != 2 {
		t.Errorf("the headings are %q, with %d fences, want one heading and one block:\n%s", headings, fences, text.String())
	}
	slices.Sort(signs)
	if diff := cmp.Diff([]string{"+", "-", "-", "-/+", "~", "~"}, signs); diff != "" {
		t.Errorf("the signs (-want +got):\n%s\n%s", diff, text.String())
	}
	if strings.Contains(text.String(), "\x1b") {
		t.Error("Markdown has colors")
	}
}

// Changes that differ only in times, and in the names of objects and owners, are written once, with
// the part of a long value that changes.
func TestAlike(t *testing.T) {
	p := &plan.Plan{}
	text := func(name, mode string) string {
		return strings.Repeat("comment = none\n", 10) + "cluster = " + name + "\nmode = " + mode + "\n"
	}
	for i, name := range []string{"one", "two", "three", "four"} {
		p.Changes = append(p.Changes, plan.Change{
			Action: plan.Update, By: plan.Operator, Kind: "ConfigMap", Namespace: "a", Name: name + "-conf", Owner: "Cluster/" + name,
			Fields: []plan.Field{
				{Path: "data.conf", From: text(name, "old"), To: text(name, "new")},
				{Path: "metadata.annotations", To: map[string]any{"at": fmt.Sprintf("2026-01-01T00:00:0%dZ", i)}},
			},
		})
	}
	var out strings.Builder
	if err := p.Write(&out, plan.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"4 × ConfigMap alike", `data.conf: …"mode = old\n" → …"mode = new\n"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
	p.Changes[3].Fields[0].To = text("four", "other")
	out.Reset()
	if err := p.Write(&out, plan.Style{}); err != nil || strings.Contains(out.String(), "alike") {
		t.Errorf("error %v; a change that is not like the others was written with them:\n%s", err, out.String())
	}
}
