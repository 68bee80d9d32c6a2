// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// How much of what is the same in both runs a picture shows: what comes before they part, and after
// they have met again. The rest is folded, and so is the middle of what differs.
const (
	sameBefore  = 3
	sameAfter   = 1
	differFirst = 12
	differLast  = 6
)

// A moment is a line of a trace that a picture shows.
type moment struct {
	at, actor, what, number, text string
	key                           string // equal for the same in two runs
}

// column is a place in both runs: the same moment in both, or one of one of them.
type column struct {
	without, with *moment
}

// momentsOf returns what of a trace a picture shows.
func momentsOf(trace []string) []moment {
	var all []moment
	for _, line := range trace {
		fields := strings.Fields(line)
		if len(fields) < 3 || strings.HasSuffix(fields[1], "-player") {
			continue
		}
		m := moment{at: fields[0], actor: fields[1], what: fields[2]}
		rest := fields[3:]
		switch m.what {
		case "write", "read", "call":
			if len(rest) > 0 && strings.Trim(rest[0], "0123456789") == "" {
				m.number, rest = rest[0], rest[1:]
			}
		case "fault", "start", "stop", "crash", "oracle", "check":
		default:
			continue
		}
		m.text = strings.Join(rest, " ")
		m.key = strings.Join([]string{m.role(), m.what, uuids.ReplaceAllString(m.text, "#")}, " ")
		all = append(all, m)
	}
	return all
}

// role returns who acts. Each process of the operator does the work of the one before it.
func (m *moment) role() string {
	if role, number, ok := strings.Cut(m.actor, "-"); ok && role == "operator" && strings.Trim(number, "0123456789") == "" {
		return role
	}
	return m.actor
}

// align puts the moments of two runs into columns: equal ones into the same, as many as possible.
func align(without, with []moment) []column {
	same := func(a, b *moment) bool { return a.key == b.key }
	longest := make([][]int, len(without)+1) // common subsequence of what is left, from i and j on
	for i := range longest {
		longest[i] = make([]int, len(with)+1)
	}
	for i := len(without) - 1; i >= 0; i-- {
		for j := len(with) - 1; j >= 0; j-- {
			if same(&without[i], &with[j]) {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var all []column
	for i, j := 0, 0; i < len(without) || j < len(with); {
		switch {
		case i < len(without) && j < len(with) && same(&without[i], &with[j]):
			all = append(all, column{without: &without[i], with: &with[j]})
			i, j = i+1, j+1
		case j < len(with) && (i == len(without) || longest[i][j+1] >= longest[i+1][j]):
			all = append(all, column{with: &with[j]})
			j++
		default:
			all = append(all, column{without: &without[i]})
			i++
		}
	}
	return all
}

// A stretch is a part of both runs: moments that both have, or those that each has instead.
type stretch struct {
	Same          []moment // of the run with the fault
	Without, With []moment
}

// stretches joins columns that are next to each other.
func stretches(columns []column) (all []*stretch) {
	var last *stretch
	for _, c := range columns {
		same := c.without != nil && c.with != nil
		if last == nil || same != (last.Same != nil) {
			last = &stretch{}
			all = append(all, last)
		}
		switch {
		case same:
			last.Same = append(last.Same, *c.with)
		case c.with != nil:
			last.With = append(last.With, *c.with)
		default:
			last.Without = append(last.Without, *c.without)
		}
	}
	return all
}

// A part is one of a picture: moments, of which the middle is folded.
type part struct {
	Run    string // "same", "without", "with"
	First  []drawn
	Folded []drawn
	Last   []drawn
}

// A drawn is a moment as a picture shows it.
type drawn struct {
	Class, Symbol, At, Actor, Text, Site string
	Full                                 string // all that the trace says of it
}

// A picture has both runs from top to bottom: one column where they are the same, and two where they
// are not.
type picture struct{ Rows [][]part }

// newPicture returns the picture of a run without the fault, and of the one with it. It is nil without both
// traces, or if they do not differ.
func newPicture(without []string, e *Example) *picture {
	if len(without) == 0 || len(e.Trace) == 0 {
		return nil
	}
	all := stretches(align(momentsOf(without), momentsOf(e.Trace)))
	if !slices.ContainsFunc(all, func(s *stretch) bool { return s.Same == nil }) {
		return nil
	}
	p := &picture{}
	for i, s := range all {
		if s.Same == nil {
			p.Rows = append(p.Rows, []part{e.part("without", s.Without, differFirst, differLast), e.part("with", s.With, differFirst, differLast)})
			continue
		}
		after, before := sameAfter, sameBefore
		if i == 0 {
			after = 0
		}
		if i == len(all)-1 {
			before = 0
		}
		p.Rows = append(p.Rows, []part{e.part("same", s.Same, after, before)})
	}
	return p
}

// part returns moments with the middle folded, if that has more than one.
func (e *Example) part(run string, moments []moment, first, last int) part {
	all := make([]drawn, len(moments))
	for i := range moments {
		all[i] = e.draw(&moments[i], run)
	}
	if len(all) <= first+last+1 {
		return part{Run: run, First: all}
	}
	return part{Run: run, First: all[:first], Folded: all[first : len(all)-last], Last: all[len(all)-last:]}
}

func (e *Example) draw(m *moment, run string) drawn {
	d := drawn{
		Class: e.classOf(m, run == "with"), Symbol: symbolOf(m), At: m.at, Actor: m.actor, Text: labelOf(m),
		Full: strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", m.at, m.actor, m.what, m.number, m.text)),
	}
	if d.Class == "wrong" {
		d.Site = e.Write.Site()
	}
	return d
}

// classOf returns how a moment looks; with says that it is of the run with the fault.
func (e *Example) classOf(m *moment, with bool) string {
	w := e.Write
	switch {
	case m.what == "fault" || m.what == "crash":
		return "fault"
	case m.what == "oracle":
		return "violation"
	case with && w != nil && w.Actor == m.actor && w.What == m.what+" "+m.number:
		return "wrong"
	default:
		return m.what
	}
}

func symbolOf(m *moment) string {
	return map[string]string{
		"write": "▲", "read": "▽", "call": "◆", "fault": "⚡", "crash": "✗", "start": "▶", "stop": "■", "oracle": "!", "check": "○",
	}[m.what]
}

var (
	answerOfSuccess = regexp.MustCompile(` -> (2\d\d|ok)\b.*$`)
	answer          = regexp.MustCompile(` -> (\S+).*$`)
	groupOfResource = regexp.MustCompile(`^(\w+ [a-z]+)\.\S+ `)
)

// labelOf says what a moment is: the request without the group of its kind, and its answer if that is
// no success.
func labelOf(m *moment) string {
	text := answerOfSuccess.ReplaceAllString(m.text, "")
	text = answer.ReplaceAllString(text, " → $1")
	text = groupOfResource.ReplaceAllString(text, "$1 ")
	switch m.what {
	case "oracle":
		text, _, _ = strings.Cut(m.text, ":")
	case "start", "stop", "crash":
		text = strings.TrimSpace(m.what + " " + text)
	}
	return text
}
