// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Limits of a timeline.
const (
	mostLanes = 8
	mostRuns  = 60
	mostDepth = 4 // rows of steps and actions below a reconcile
)

func number(n int) string { return strconv.Itoa(n) }

// end is when a reconcile ended, or now.
func (r *reconcile) end(now time.Time) time.Time {
	if r.ended.IsZero() {
		return latest(r.began, now)
	}
	return r.ended
}

// anchor is the id of what the page says of a reconcile in words.
func (r *reconcile) anchor() string {
	return idOf("r-", r.controller+"/"+r.id+"/"+strconv.FormatInt(r.began.UnixNano(), 36))
}

// timeline is the page with the reconciles of an object, and of those that it has to do with.
func (v *viewing) timeline() block {
	o := objectOf(v.query)
	var entries []journal.Entry
	if v.server.options.Entries != nil {
		entries = v.server.options.Entries(o)
	}
	all := reconcilesOf(entries)
	content := append(v.notices(), render("head", "timeline-head", headOf{Title: o.Name, Namespace: o.Namespace, Kind: o.Kind, Object: queryOf(o)}))
	if len(all) == 0 {
		content = append(content, render("none", "notice", o.String()+" has not been reconciled lately by this process."))
	} else {
		content = append(content, v.drawTimeline(o, all, mostRuns)...)
	}
	return render("content", "content", nil, content...)
}

// A lane is a row of a timeline: what one controller does with one object.
type lane struct {
	Name         string
	End          float64 // where the name stands once more in a timeline that scrolls, which begins at its end
	Y, Height    float64
	Bars         []barOf
	Spans, Marks []pieceOf
	First        bool
}

// A barOf is a reconcile in a timeline.
type barOf struct {
	X, Y, W, H                       float64
	Tone, Symbol, Text, Title, Cause string
	CauseX, TextX, TextY             float64
	Anchor                           string
}

// A pieceOf is a step, an action, or something that happened.
type pieceOf struct {
	X, Y, W           float64
	Tone, Text, Title string
	Anchor            string
}

// A path is an arrow.
type path struct{ D, Title string }

// A tick is a place of the axis with its time.
type tick struct {
	X    float64
	Text string
}

// A drawn timeline, in pixels.
type drawn struct {
	Title         string
	Width, Height float64
	Lanes         []lane
	Arrows        []path
	Gaps          []gap
	Ticks         []tick
	Legend        []legend
}

// Measures of a timeline.
const (
	margin     = 12.0
	laneTop    = 34.0 // for its name and the causes
	barHeight  = 22.0
	spanHeight = 13.0
	markHeight = 15.0
	laneBottom = 16.0
	axisHeight = 26.0
	letter     = 6.3  // the width of most letters at 11 pixels
	room       = 60.0 // for what is said of the last reconcile
)

// widths are how wide a timeline is at least, by what the script says of the screen: as wide as
// the page is, for a narrow one as that of a phone.
var widths = map[string]float64{"": 1230, "narrow": 334, "wide": 1630}

// drawTimeline draws the latest reconciles of an object and of those it has to do with, and says the
// same in words.
func (v *viewing) drawTimeline(o journal.Object, own []*reconcile, most int) []block {
	all := slices.Clone(own)
	lanes := 1
	for _, other := range related(o, own) {
		if lanes == mostLanes || v.server.options.Entries == nil {
			break
		}
		if theirs := reconcilesOf(v.server.options.Entries(other)); len(theirs) > 0 {
			all = append(all, theirs...)
			lanes++
		}
	}
	slices.SortStableFunc(all, func(a, b *reconcile) int { return a.began.Compare(b.began) })
	all = all[max(0, len(all)-most):]
	words := make([]block, 0, len(all))
	several := slices.ContainsFunc(all, func(r *reconcile) bool { return r.controller != all[0].controller })
	for _, r := range slices.Backward(all) {
		w := v.words(r, o)
		if !several {
			w.Controller = ""
		}
		words = append(words, render(r.anchor(), "reconcile", w))
	}
	return []block{
		render("timeline", "timeline", v.draw(o, all)),
		render("reconciles", "reconciles", nil, words...),
	}
}

// draw places the reconciles, which are sorted by their beginning.
func (v *viewing) draw(o journal.Object, all []*reconcile) drawn {
	a := newAxis(all, v.now)
	a.stretch(widths[v.query.Get("screen")] - 2*margin - room)
	d := drawn{Title: "Reconciles of " + o.String(), Width: a.width() + 2*margin + room, Legend: legendOf(all)}
	type key struct {
		object     journal.Object
		controller string
	}
	var keys []key
	runs := map[key][]*reconcile{}
	for _, r := range all {
		k := key{r.object, r.controller}
		if runs[k] == nil {
			keys = append(keys, k)
		}
		runs[k] = append(runs[k], r)
	}
	slices.SortStableFunc(keys, func(x, y key) int { return cmp.Compare(b2i(x.object != o), b2i(y.object != o)) })
	bars := map[*reconcile]*barOf{}
	y := axisHeight
	for _, k := range keys {
		l := lane{Name: explanation.OneLine(k.object.String() + " · controller " + k.controller), Y: y, First: k.object == o}
		l.place(runs[k], a, v.now)
		for i, r := range runs[k] {
			bars[r] = &l.Bars[i]
		}
		y += l.Height
		d.Lanes = append(d.Lanes, l)
		d.Width = max(d.Width, float64(len([]rune(l.Name)))*letter*1.15+2*margin)
	}
	for i, l := range d.Lanes {
		if name := float64(len([]rune(l.Name))) * letter * 1.15; d.Width > max(widths[v.query.Get("screen")], 2*name)+4*margin {
			d.Lanes[i].End = d.Width - margin
		}
	}
	d.Height = y + 6
	for _, g := range a.gaps {
		d.Gaps = append(d.Gaps, gap{g.X + margin, g.Text})
	}
	d.ticks(all, a)
	for _, w := range arrows(all) {
		d.Arrows = append(d.Arrows, path{curve(bars[w.from], bars[w.to]), fmt.Sprintf("%s caused %s", w.from.object, w.to.object)})
	}
	return d
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ticks names the time of reconciles, as many as there is room for: of those within a second the
// milliseconds.
func (d *drawn) ticks(all []*reconcile, a *axis) {
	free, second, before := math.Inf(-1), "", ""
	for _, r := range all {
		x, text := a.at(r.began)+margin, r.began.UTC().Format("15:04:05")
		width := 9 * letter
		if text == second {
			text, width = r.began.UTC().Format(".000"), 5*letter
		}
		if x < free || text == before || slices.ContainsFunc(d.Gaps, func(g gap) bool { return x < g.X+16 && g.X-16 < x+width }) {
			continue
		}
		d.Ticks = append(d.Ticks, tick{x, text})
		free, second, before = x+width, r.began.UTC().Format("15:04:05"), text
	}
}

// place puts reconciles of a lane side by side, with their steps below.
func (l *lane) place(runs []*reconcile, a *axis, now time.Time) {
	top := l.Y + laneTop
	depth := 0
	hasMarks := false
	freeText := math.Inf(-1)
	for _, r := range runs {
		x, to := a.at(r.began)+margin, a.at(r.end(now))+margin
		tone, symbol, word := r.tone()
		b := barOf{X: x, Y: top, W: max(to-x, leastBar), H: barHeight, Tone: tone, Symbol: symbol, Anchor: r.anchor(), TextX: x + 6, TextY: top + 15}
		if room := b.W - 12; float64(len([]rune(symbol+" "+word)))*letter <= room {
			b.Text = symbol + " " + word
		} else {
			b.Text, b.TextX = symbol, x+b.W/2-4
		}
		b.Title = fmt.Sprintf("%s: %s after %s, because: %s", r.object, word, short(r.end(now).Sub(r.began)), causesOf(r))
		for _, c := range r.causes[:min(1, len(r.causes))] {
			if x >= freeText {
				b.Cause, b.CauseX = cmp.Or(causeSymbols[c.Kind], "?"), x-1
				freeText = x + 14
			}
		}
		l.Bars = append(l.Bars, b)
		depth = max(depth, l.spans(r, a, top+barHeight+3))
		hasMarks = hasMarks || len(r.marks) > 0
	}
	y := top + barHeight + 3 + float64(depth)*spanHeight
	if hasMarks {
		for _, r := range runs {
			l.marksOf(r, a, y+11)
		}
		y += markHeight
	}
	l.Height = y + laneBottom - l.Y
}

// spans puts the steps and actions of a reconcile into as few rows as they need, and returns how
// many.
func (l *lane) spans(r *reconcile, a *axis, top float64) int {
	var ends []float64
	sorted := slices.Clone(r.spans)
	slices.SortStableFunc(sorted, func(x, y span) int {
		return cmp.Or(b2i(x.action)-b2i(y.action), x.from.Compare(y.from))
	})
	for _, s := range sorted {
		if s.skipped != "" {
			continue
		}
		x, to := a.at(s.from)+margin, a.at(s.to)+margin
		row := slices.IndexFunc(ends, func(end float64) bool { return end <= x })
		if row < 0 {
			if row = len(ends); row == mostDepth {
				continue // it is in the words
			}
			ends = append(ends, 0)
		}
		ends[row] = max(to, x+3) + 1
		p := pieceOf{X: x, Y: top + float64(row)*spanHeight, W: max(to-x, 3), Tone: toneOf(s.outcome), Anchor: r.anchor()}
		p.Title = fmt.Sprintf("%s %s, %s", s.name, s.outcome, short(s.to.Sub(s.from)))
		if float64(len([]rune(s.name)))*letter*0.9 <= p.W-4 {
			p.Text = s.name
		}
		l.Spans = append(l.Spans, p)
	}
	return len(ends)
}

func toneOf(o journal.Outcome) string {
	return map[string]string{"failed": "bad", "stalled": "bad", "waiting": "waiting", "requeue": "again"}[o.Word()]
}

// markSymbols are the symbols of marks. A write that failed or has changed nothing has its own.
var markSymbols = map[markKind]string{wrote: "▲", called: "◈", read: "▽", hot: "♨"}

func (l *lane) marksOf(r *reconcile, a *axis, y float64) {
	for _, m := range r.marks {
		p := pieceOf{X: a.at(m.at) + margin, Y: y, Tone: "plain", Text: m.symbol(), Title: explanation.OneLine(m.text), Anchor: r.anchor()}
		if m.bad {
			p.Tone = "bad"
		}
		l.Marks = append(l.Marks, p)
	}
}

func (m *mark) symbol() string {
	switch {
	case m.kind == wrote && m.bad:
		return "✗"
	case m.kind == wrote && m.noOp:
		return "△"
	default:
		return markSymbols[m.kind]
	}
}

// curve leads from the end of a bar to the beginning of another.
func curve(from, to *barOf) string {
	x1, y1, x2, y2 := from.X+from.W, from.Y+from.H/2, to.X, to.Y+to.H/2
	if from.Y == to.Y { // in one lane: above it, and down on the bar beside the symbol of its cause
		x1, y1, x2, y2 = from.X+from.W-3, from.Y, to.X+17.5, to.Y
		up := y1 - min(22, 12+(x2-x1)/8)
		return fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1, y1, x1, up, x2, up, x2, y2-1)
	}
	bend := max(14, min(40, math.Abs(x2-x1)/2))
	return fmt.Sprintf("M%.1f,%.1f C%.1f,%.1f %.1f,%.1f %.1f,%.1f", x1, y1, x1+bend, y1, x2-bend, y2, x2-1, y2)
}

func causesOf(r *reconcile) string {
	texts := make([]string, 0, len(r.causes))
	for _, c := range r.causes {
		texts = append(texts, causeText(c))
	}
	if len(texts) == 0 {
		return "something that was not recorded"
	}
	return strings.Join(texts, ", ")
}

// An inWords is what a page says of a reconcile in words.
type inWords struct {
	Tone, Symbol, Word, Object, Controller, Because, Took string
	Query                                                 template.URL
	Began                                                 time.Time
	Failure, Class, Remedy                                string
	Lines                                                 []wordLine
	Next                                                  time.Time
	Why                                                   string
}

// A wordLine is one thing that happened in a reconcile.
type wordLine struct{ At, Symbol, Tone, Text string }

func (v *viewing) words(r *reconcile, of journal.Object) inWords {
	w := inWords{Controller: r.controller, Because: causesOf(r), Began: r.began, Next: r.next, Why: r.why, Took: short(r.end(v.now).Sub(r.began))}
	w.Tone, w.Symbol, w.Word = r.tone()
	if r.object != of {
		w.Object, w.Query = r.object.String(), queryOf(r.object)
	}
	if r.result == "" {
		w.Took = ""
	}
	if r.outcome.Err != nil {
		w.Failure, w.Class, w.Remedy = explanation.OneLine(r.outcome.Err.Error()), r.outcome.Class, explanation.OneLine(r.outcome.Remedy)
	}
	type line struct {
		at time.Time
		wordLine
	}
	var lines []line
	for _, s := range r.spans {
		l := line{s.to, wordLine{Tone: toneOf(s.outcome), Symbol: "▬", Text: explanation.OneLine(s.name + " " + s.outcome.String() + " (" + short(s.to.Sub(s.from)) + ")")}}
		if s.skipped != "" {
			l.wordLine = wordLine{Tone: "blocked", Symbol: "·", Text: explanation.OneLine(s.skipped)}
		}
		lines = append(lines, l)
	}
	for _, m := range r.marks {
		l := line{m.at, wordLine{Symbol: m.symbol(), Text: explanation.OneLine(m.text)}}
		if m.step != "" {
			l.Text += ", by " + explanation.OneLine(m.step)
		}
		if m.bad {
			l.Tone = "bad"
		}
		lines = append(lines, l)
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	for _, l := range lines {
		l.At = "+" + short(l.at.Sub(r.began))
		w.Lines = append(w.Lines, l.wordLine)
	}
	return w
}
