// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/markers"
	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

// rbacPrinter prints needs and comparisons. Its err is the first error.
type rbacPrinter struct {
	w     io.Writer
	color bool
	err   error
}

func (p *rbacPrinter) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.w, format, args...); p.err == nil {
		p.err = err
	}
}

// paint returns text in a color of the terminal, by its number.
func (p *rbacPrinter) paint(number int, text string) string {
	if !p.color {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", number, text)
}

const (
	bold   = 1
	faint  = 2
	red    = 31
	green  = 32
	yellow = 33
)

// needs prints what an operator needs.
func (p *rbacPrinter) needs(format, name string, needs []permission.Need) {
	rules := permission.Rules(permission.WithReads(needs))
	switch format {
	case "yaml":
		p.printf("%s", permission.Role(name, rules))
	case "markers":
		p.printf("%s", permission.Markers(rules))
	case "json":
		p.json(map[string]any{"needs": needs})
	default:
		p.table(needs)
	}
}

func (p *rbacPrinter) json(v any) {
	e := json.NewEncoder(p.w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); p.err == nil {
		p.err = err
	}
}

// rbacRow is a line of the table: verbs of a resource that the same code asks for.
type rbacRow struct{ what, verbs, by string }

// table prints needs with those who have them. The resource is printed once, before its first verbs.
func (p *rbacPrinter) table(needs []permission.Need) {
	var rows []rbacRow
	var last permission.Need
	for _, n := range needs {
		if len(rows) > 0 && what(n) == what(last) && slices.Equal(n.By, last.By) {
			rows[len(rows)-1].verbs += " " + n.Verb
			continue
		}
		row := rbacRow{what(n), n.Verb, strings.Join(n.By, ", ")}
		if what(n) == what(last) {
			row.what = ""
		}
		rows, last = append(rows, row), n
	}
	width, verbs := len("RESOURCE"), len("VERBS")
	for _, r := range rows {
		width, verbs = max(width, len(r.what)), max(verbs, len(r.verbs))
	}
	p.printf("%s\n", p.paint(bold, fmt.Sprintf("%-*s  %-*s  %s", width, "RESOURCE", verbs, "VERBS", "ASKED BY")))
	for _, r := range rows {
		p.printf("%s\n", strings.TrimRight(fmt.Sprintf("%-*s  %-*s  %s", width, r.what, verbs, r.verbs, r.by), " "))
	}
}

// what names the resource of a need, and the objects of lists and watches that ask for one each.
func what(n permission.Need) string {
	var names []string
	for _, t := range n.Targets {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	if n.Verb != "list" && n.Verb != "watch" || len(names) == 0 || names[0] == "" {
		return n.What()
	}
	return n.What() + " named " + strings.Join(slices.Compact(names), ", ")
}

// comparison prints what roles lack and what they have too much.
func (p *rbacPrinter) comparison(c rbac.Comparison, requesting []markers.Marker) {
	for _, m := range c.Missing {
		p.printf("%s  %s\n", p.paint(red, "missing"), strings.ReplaceAll(m.Text, "\n", "\n       "))
		if len(m.By) > 0 {
			p.printf("         asked by %s\n", strings.Join(m.By, ", "))
		}
	}
	if len(c.Missing) > 1 {
		var needs []permission.Need
		for _, m := range c.Missing {
			needs = append(needs, m.Need)
		}
		text := strings.TrimSpace(permission.Markers(permission.Rules(permission.WithReads(needs))))
		p.printf("what is missing, in as few markers as possible; -o markers prints all that the operator needs:\n%s\n", indent(text))
	}
	for _, g := range c.Unused {
		p.printf("%s   %s\n", p.paint(yellow, "unused"), g)
		for _, m := range requesting {
			if m.Requests(g) {
				p.printf("         requested by %s: %s\n", m.Place, m.Text)
			}
		}
	}
	for _, g := range c.Unchecked {
		text := "unchecked  " + g.String()
		if g.Unrun != "" {
			text += ": no simulation runs " + g.Unrun
		}
		p.printf("%s\n", p.paint(faint, text))
	}
	verdict := "no rule is missing or unused"
	color := green
	if !c.Matches() {
		verdict, color = fmt.Sprintf("%d missing, %d unused", len(c.Missing), len(c.Unused)), red
	}
	if n := len(c.Unchecked); n > 0 {
		verdict += fmt.Sprintf("; %d unchecked, whose use need not show in a simulation", n)
	}
	p.printf("%s\n", p.paint(color, verdict))
}
