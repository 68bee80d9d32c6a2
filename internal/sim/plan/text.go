// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// A Style says how a plan is written.
type Style struct {
	Colors   bool
	Markdown bool
	All      bool // also what other controllers do, each object of a group, and each field of a status
}

// alike is from how many objects on changes that are alike are written once.
const alike = 4

// longest is how many bytes of a value are written.
const longest = 60

var symbols = map[Action]struct{ sign, color string }{
	Create: {"+", "32"}, Update: {"~", "33"}, Delete: {"-", "31"}, Replace: {"-/+", "31"}, Pending: {"-", "31"},
}

// Write writes a plan for people.
func (p *Plan) Write(out io.Writer, s Style) error {
	w := &writer{Style: s}
	changes := append(append([]Change{}, p.AtStart...), p.Changes...)
	if s.Markdown {
		w.line("### %s", p.Summary())
		w.line("")
		w.line("```diff")
	}
	if len(p.AtStart) > 0 {
		w.line("The operator, at its start:")
		w.changes(p.AtStart)
	}
	if len(p.Changes) > 0 {
		w.line("Because of the change:")
		w.changes(p.Changes)
	}
	if s.Markdown {
		w.line("```")
		w.line("")
	}
	w.list("Written again and again", repeated(changes))
	w.list("Not known", p.Unknown)
	w.list("Assumed", p.Assumptions)
	if !s.Markdown {
		w.line("%s", p.Summary())
	}
	_, err := io.WriteString(out, w.text.String())
	return err
}

// Summary says in a line what happens.
func (p *Plan) Summary() string {
	n := Count(append(append([]Change{}, p.AtStart...), p.Changes...))
	text := fmt.Sprintf("Plan: %d to create, %d to change, %d to delete", n.Create, n.Update, n.Delete)
	if n.Create+n.Update+n.Delete == 0 {
		text = "Plan: nothing to do"
		if p.Incomplete() {
			text = "Plan: nothing that is known"
		}
	}
	if n.Restart > 0 {
		text += fmt.Sprintf("; %s restart", count(n.Restart, "workload"))
	}
	if n.Assumed > 0 {
		text += fmt.Sprintf("; %s by other controllers, assumed", count(n.Assumed, "change"))
	}
	return text + fmt.Sprintf(". %s copied with %s.", count(p.Copied, "object"), count(p.Requests, "list request"))
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func repeated(changes []Change) []string {
	var out []string
	for _, c := range changes {
		if c.Repeats > 0 {
			out = append(out, fmt.Sprintf("%s: %d times to a state that it was in before", c, c.Repeats))
		}
	}
	return out
}

type writer struct {
	Style
	text strings.Builder
}

// line writes a line. What comes from the cluster was passed through [printable.Line] before it was
// painted.
func (w *writer) line(format string, args ...any) { fmt.Fprintf(&w.text, format+"\n", args...) }

func (w *writer) list(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	w.line("%s:", title)
	for _, text := range lines {
		if w.Markdown {
			text = printable.Markdown(text)
		}
		w.line("  - %s", printable.Line(text))
	}
	w.line("")
}

// changes writes changes by owner, in the order in which each owner is first affected.
func (w *writer) changes(changes []Change) {
	groups := map[string][]Change{}
	var order []string
	assumed := map[string]int{}
	var kinds []string
	for _, c := range changes {
		if c.By == Others && !w.All {
			if assumed[c.Kind] == 0 {
				kinds = append(kinds, c.Kind)
			}
			assumed[c.Kind]++
			continue
		}
		g := c.signature()
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], c)
	}
	byOwner := map[string][][]Change{}
	var owners []string
	for _, g := range order {
		members := groups[g]
		if len(members) >= alike && !w.All {
			owners, byOwner = add(owners, byOwner, "", members)
			continue
		}
		for _, c := range members {
			owners, byOwner = add(owners, byOwner, c.Owner, []Change{c})
		}
	}
	for _, owner := range owners {
		if owner != "" {
			w.line("")
			w.line("  %s", w.paint("1", w.shown(strings.Replace(owner, "/", " ", 1))))
		}
		for _, members := range byOwner[owner] {
			w.change(members)
		}
	}
	if len(kinds) > 0 {
		parts := make([]string, len(kinds))
		for i, kind := range kinds {
			parts[i] = fmt.Sprintf("%d × %s", assumed[kind], kind)
		}
		w.line("")
		w.line("  %s", w.paint("2", w.shown("other controllers, assumed: "+strings.Join(parts, ", ")+" (--all)")))
	}
	w.line("")
}

func add(owners []string, byOwner map[string][][]Change, owner string, members []Change) ([]string, map[string][][]Change) {
	if _, known := byOwner[owner]; !known {
		owners = append(owners, owner)
	}
	byOwner[owner] = append(byOwner[owner], members)
	return owners, byOwner
}

// change writes one change, or several that are alike.
func (w *writer) change(members []Change) {
	c := members[0]
	symbol := symbols[c.Action]
	text := c.String()
	if len(members) > 1 {
		text = fmt.Sprintf("%d × %s alike: %s", len(members), c.Kind, names(members))
	}
	text = w.shown(text)
	for _, remark := range remarks(c) {
		text += "  " + w.paint("2", w.shown("# "+remark))
	}
	if w.Markdown { // diff colors what begins with + and -
		w.line("%s %s", symbol.sign, text)
	} else {
		w.line("  %s %s", w.paint(symbol.color, fmt.Sprintf("%3s", symbol.sign)), text)
	}
	hidden := 0
	for _, f := range c.Fields {
		if !w.All && strings.HasPrefix(f.Path, "status.") && !strings.HasSuffix(f.Path, ".status") {
			hidden++
			continue
		}
		from, to := shorts(f.From, f.To)
		w.line("          %s", w.shown(fmt.Sprintf("%s: %s → %s", f.Path, from, to)))
	}
	if hidden > 0 {
		w.line("          %s", w.paint("2", count(hidden, "more field")+" of the status (--all)"))
	}
}

func remarks(c Change) []string {
	var out []string
	if c.Restart {
		out = append(out, "restarts its Pods")
	}
	if c.Action == Pending {
		out = append(out, "being deleted, held by "+strings.Join(c.Waits, ", "))
	}
	switch c.By {
	case User:
		out = append(out, "your change")
	case Collector:
		out = append(out, "its owner is deleted")
	case Others:
		out = append(out, "assumed")
	}
	return out
}

// names returns some of the names of objects.
func names(members []Change) string {
	const most = 3
	list := make([]string, len(members))
	for i, c := range members {
		list[i] = strings.TrimPrefix(c.String(), c.Kind+" ")
	}
	slices.Sort(list)
	text := strings.Join(list[:min(len(list), most)], ", ")
	if more := len(members) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// shown returns a text of the cluster on one line.
func (w *writer) shown(text string) string {
	if w.Markdown {
		return printable.Code(text)
	}
	return printable.Line(text)
}

func (w *writer) paint(code, text string) string {
	if !w.Colors || w.Markdown {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// shorts returns two values on one line each: of long texts, the part from which on they differ.
func shorts(from, to any) (string, string) {
	a, ok := from.(string)
	b, both := to.(string)
	if !ok || !both || len(a) <= longest && len(b) <= longest {
		return short(from), short(to)
	}
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	const before = longest / 3
	if n <= before {
		return short(from), short(to)
	}
	begin := n - before
	if line := strings.LastIndex(a[:n], "\n") + 1; line > begin {
		begin = line
	}
	return "…" + short(strings.ToValidUTF8(a[begin:], "")), "…" + short(strings.ToValidUTF8(b[begin:], ""))
}

// short returns a value on one line, with control characters escaped.
func short(value any) string {
	if value == nil {
		return "(none)"
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	data := strings.TrimSpace(text.String())
	if len(data) > longest {
		return strings.ToValidUTF8(data[:longest], "") + "…"
	}
	return data
}
