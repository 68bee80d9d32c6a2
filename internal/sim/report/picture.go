// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"html/template"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Measures of a picture, in pixels.
const (
	columnWidth = 24
	laneHeight  = 24
	labelHeight = 132 // of the slanted labels above the lanes
	labelMost   = 26  // characters of a label
	titleHeight = 22
	timeHeight  = 20
	nameWidth   = 96
	rightMargin = 110 // the last labels lean over the edge
)

// How many columns a picture has: some before the first difference, then the first ones, and the
// last ones, which have the violation.
const (
	columnsBefore = 4
	columnsFirst  = 30
	columnsLast   = 8
)

// A moment is a line of a trace that a picture shows.
type moment struct {
	at, actor, what, number, text string
}

// column is a place in a picture: the same moment in both runs, or one of one of them. Without both it
// stands for a number of columns that are left out.
type column struct {
	without, with *moment
	left          int
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
		all = append(all, m)
	}
	return all
}

// align puts the moments of two runs into columns: equal ones into the same, as many as possible.
func align(without, with []moment) []column {
	same := func(a, b *moment) bool { return a.actor == b.actor && a.what == b.what && a.text == b.text }
	const most = 400 // moments, for the table below
	without, with = without[:min(len(without), most)], with[:min(len(with), most)]
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

// choose leaves out what comes long before the first difference, and the middle of what comes after it.
// It returns the place of the first difference, -1 if there is none.
func choose(all []column) (chosen []column, difference int) {
	difference = slices.IndexFunc(all, func(c column) bool { return c.with == nil || c.without == nil })
	from := max(0, difference-columnsBefore)
	if from > 1 {
		chosen = append(chosen, column{left: from})
	} else {
		from = 0
	}
	rest := all[from:]
	if most := columnsBefore + columnsFirst + columnsLast; len(rest) > most+1 {
		first, last := rest[:most-columnsLast], rest[len(rest)-columnsLast:]
		rest = slices.Concat(first, []column{{left: len(rest) - most}}, last)
	}
	chosen = append(chosen, rest...)
	return chosen, slices.IndexFunc(chosen, func(c column) bool { return c.left == 0 && (c.with == nil || c.without == nil) })
}

// picture draws the run without the fault, and below it the one with it. It is empty without both
// traces, or if they do not differ.
func picture(without []string, e *Example) template.HTML {
	if len(without) == 0 || len(e.Trace) == 0 {
		return ""
	}
	columns, difference := choose(align(momentsOf(without), momentsOf(e.Trace)))
	if difference < 0 {
		return ""
	}
	p := &painter{columns: columns, difference: difference, example: e}
	for _, c := range columns {
		for _, m := range []*moment{c.without, c.with} {
			if m != nil && m.actor != "sim" && !slices.Contains(p.lanes, m.actor) {
				p.lanes = append(p.lanes, m.actor)
			}
		}
	}
	slices.SortStableFunc(p.lanes, func(a, b string) int { return rankOfActor(a) - rankOfActor(b) })
	p.lanes = append(p.lanes, "sim")
	band := titleHeight + labelHeight + len(p.lanes)*laneHeight + timeHeight
	width, height := nameWidth+len(columns)*columnWidth+rightMargin, 2*band+8
	p.printf(`<svg class="runs" role="img" width="%d" height="%d" viewBox="0 0 %d %d" aria-label="The run without the fault and the run with it, from the first difference on; the traces below say the same in words">`, width, height, width, height)
	p.band("without the fault", 0, func(c column) *moment { return c.without })
	p.band("with it", band+8, func(c column) *moment { return c.with })
	p.printf(`<path class="difference" d="M%d %dV%d"/>`, p.x(difference)-columnWidth/2, titleHeight, height)
	p.printf("</svg>")
	return template.HTML(p.b.String()) //nolint:gosec // texts are escaped
}

// rankOfActor orders lanes: the processes of the operator, then who else acts.
func rankOfActor(actor string) int {
	if strings.HasPrefix(actor, "operator") {
		return 0
	}
	return 1
}

// A painter writes a picture.
type painter struct {
	b          strings.Builder
	columns    []column
	difference int
	lanes      []string
	example    *Example
}

func (p *painter) printf(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }

// x is the middle of a column.
func (p *painter) x(i int) int { return nameWidth + i*columnWidth + columnWidth/2 }

// band draws one run.
func (p *painter) band(title string, top int, of func(column) *moment) {
	lanes := top + titleHeight + labelHeight
	bottom := lanes + len(p.lanes)*laneHeight
	p.printf(`<text class="title" x="0" y="%d">%s</text>`, top+15, title)
	for i, actor := range p.lanes {
		name := actor
		if actor == "sim" {
			name = "simulator"
		}
		y := lanes + i*laneHeight
		p.printf(`<text x="0" y="%d">%s</text><path class="lane" d="M%d %dH%d"/>`, y+16, html.EscapeString(name), nameWidth, y+12, nameWidth+len(p.columns)*columnWidth)
	}
	free := 0
	for i, c := range p.columns {
		x := p.x(i)
		if c.left > 0 {
			p.printf(`<text class="left" x="%d" y="%d">⋯<title>%d moments are left out</title></text>`, x, lanes+16, c.left)
			continue
		}
		m := of(c)
		if m == nil {
			continue
		}
		class := p.classOf(m, c.with == m)
		if class == "fault" || class == "violation" || class == "wrong" {
			p.printf(`<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`, class, x-columnWidth/2, lanes-4, columnWidth, bottom-lanes+8)
		}
		y := lanes + slices.Index(p.lanes, p.laneOf(m))*laneHeight + 17
		p.printf(`<g class="moment %s"><title>%s</title><text class="symbol" x="%d" y="%d">%s</text>`, class, html.EscapeString(p.titleOf(m, class)), x, y, symbolOf(m))
		p.printf(`<text class="label" transform="translate(%d %d) rotate(-45)">%s</text></g>`, x+3, lanes-8, html.EscapeString(labelOf(m)))
		if x >= free && m.actor != "" {
			p.printf(`<text class="time" x="%d" y="%d">%s</text>`, x, bottom+14, html.EscapeString(m.at))
			free = x + 16 + 7*utf8.RuneCountInString(m.at)
		}
	}
}

// laneOf is the actor to whose lane a moment belongs.
func (p *painter) laneOf(m *moment) string {
	if m.what == "fault" || m.what == "oracle" || m.what == "check" {
		return "sim"
	}
	return m.actor
}

// classOf returns how a moment looks; with says that it is of the run with the fault.
func (p *painter) classOf(m *moment, with bool) string {
	w := p.example.Write
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

// titleOf says everything of a moment, and of the wrong write its line of code.
func (p *painter) titleOf(m *moment, class string) string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s", m.at, m.actor, m.what, m.number, m.text))
	if class == "wrong" && p.example.Write.Site() != "" {
		text += "\nat " + p.example.Write.Site()
	}
	return text
}

func symbolOf(m *moment) string {
	return map[string]string{
		"write": "▲", "read": "▽", "call": "◆", "fault": "⚡", "crash": "✗", "start": "▶", "stop": "■", "oracle": "!", "check": "·",
	}[m.what]
}

var (
	answerOfSuccess = regexp.MustCompile(` -> (2\d\d|ok)\b.*$`)
	answer          = regexp.MustCompile(` -> (\S+).*$`)
	groupOfResource = regexp.MustCompile(`^(\w+ [a-z]+)\.\S+ `)
	namespaceOf     = regexp.MustCompile(` [a-z0-9.-]+/`)
)

// labelOf says in a few words what a moment is.
func labelOf(m *moment) string {
	text := answerOfSuccess.ReplaceAllString(m.text, "")
	text = answer.ReplaceAllString(text, " → $1")
	text = groupOfResource.ReplaceAllString(text, "$1 ")
	text = namespaceOf.ReplaceAllString(text, " ")
	switch m.what {
	case "oracle":
		text, _, _ = strings.Cut(m.text, ":")
	case "start", "stop", "crash":
		text = strings.TrimSpace(m.what + " " + text)
	}
	if runes := []rune(text); len(runes) > labelMost {
		text = string(runes[:labelMost-1]) + "…"
	}
	return text
}
