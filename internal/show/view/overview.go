// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// notices returns what is to be said of the process and of the page itself.
func (v *viewing) notices() []block {
	var all []block
	for _, text := range v.noticeTexts() {
		all = append(all, render(idOf("n-", text), "notice", text))
	}
	return all
}

func (v *viewing) noticeTexts() []string {
	var all []string
	o := &v.server.options
	if o.Elected != nil && !o.Elected() {
		all = append(all, "This process is not the leader: it reconciles nothing, and knows nothing of what the leader does. Its Lease names the leader.")
	}
	if o.Entries == nil && o.NoJournal != "" {
		all = append(all, o.NoJournal)
	}
	if c, ok := o.Objects.(*Cluster); ok && c.Problem() != nil {
		all = append(all, "The kinds are not known, name them with --kind: "+explanation.OneLine(c.Problem().Error()))
	}
	loading, errs := v.table.loading()
	if loading {
		all = append(all, "Objects are still being loaded.")
	}
	for _, err := range errs {
		all = append(all, "Objects of a kind are missing: "+explanation.OneLine(err))
	}
	return all
}

// A share is the part of a bar for one state.
type share struct {
	State State
	Count int
	X, W  float64
	Query template.URL
}

// A kindLine is what the overview says of a kind.
type kindLine struct {
	Kind, Group string
	Query       template.URL
	Total       int
	Shares      []share
}

// overview is the page about everything.
func (v *viewing) overview() block {
	content := v.notices()
	var kinds []block
	for _, t := range v.table.tallies() {
		line := kindLine{Kind: t.Kind.Kind, Group: t.Kind.Group, Total: t.Total, Query: encode(url.Values{"kind": {t.Kind.Kind}})}
		x := 0.0
		for _, state := range states {
			if n := t.States[state]; n > 0 {
				w := 100 * float64(n) / float64(t.Total)
				line.Shares = append(line.Shares, share{state, n, x, w, encode(url.Values{"kind": {t.Kind.Kind}, "state": {string(state)}})})
				x += w
			}
		}
		kinds = append(kinds, render(idOf("k-", t.Kind), "kind", line))
	}
	content = append(content, render("kinds", "kinds", len(kinds), kinds...))
	if trouble := v.trouble(); len(trouble) > 0 {
		content = append(content, render("trouble", "trouble", nil, trouble...))
	} else if len(kinds) > 0 {
		content = append(content, render("trouble", "calm", nil))
	}
	return render("content", "content", nil, append(content, v.controllers()...)...)
}

const mostTrouble = 10

// trouble returns the largest groups of objects that are not ready.
func (v *viewing) trouble() []block {
	var all []block
	for _, g := range v.table.choose(filter{}, 1).Groups {
		if g.State != Ready && len(all) < mostTrouble {
			all = append(all, render("g-"+g.Key, "troubled", groupLine{g, encode(url.Values{"group": {g.Key}}), g.Rows[0].object.String(), queryOf(g.Rows[0].object)}))
		}
	}
	return all
}

// A controllerCard is what the overview says of a controller.
type controllerCard struct {
	Name          string
	Queue         int // less than zero if it is not known
	Total, Failed int
	Bars          []bar
	Most          int
	Lists         []lineList
}

// A lineList is a list with its title.
type lineList struct {
	Title, Tone string
	Lines       []objectLine
}

// A bar is a minute in the plot of a controller.
type bar struct {
	X                int
	H, Failed        float64 // of 40
	Y, YFailed       float64
	Count, CountFail int
}

// An objectLine is an object in a list, with something that is said of it.
type objectLine struct {
	Name, Text string
	Query      template.URL // empty without a page
}

func lineOf(o journal.Object, format string, args ...any) objectLine {
	return objectLine{o.String(), explanation.OneLine(fmt.Sprintf(format, args...)), queryOf(o)}
}

func (v *viewing) controllers() []block {
	queues := v.queues()
	var cards []block
	for _, p := range v.server.options.Activity.plots(v.now) {
		c := controllerCard{Name: p.Name, Queue: -1, Most: max(1, slices.Max(p.Reconciles))}
		if n, ok := queues[p.Name]; ok {
			c.Queue = n
		}
		const height = 40
		for i, n := range p.Reconciles {
			failed := p.Failed[i]
			c.Total += n
			c.Failed += failed
			if n == 0 {
				continue
			}
			h, f := height*float64(n)/float64(c.Most), height*float64(failed)/float64(c.Most)
			if failed > 0 {
				f = max(f, 3)
			}
			h = max(h, 1.5, f)
			c.Bars = append(c.Bars, bar{X: 4 * i, H: h, Y: height - h, Failed: f, YFailed: height - f, Count: n, CountFail: failed})
		}
		c.Lists = listsOf(p)
		cards = append(cards, render(idOf("c-", p.Name), "controller", c))
	}
	if len(cards) == 0 {
		return nil
	}
	return []block{render("controllers", "controllers", nil, cards...)}
}

// queues returns the lengths of the queues that are known, by their controllers.
func (v *viewing) queues() map[string]int {
	if v.server.options.Queues == nil {
		return nil
	}
	return v.server.options.Queues()
}

// listsOf returns the lists of a controller that are not empty.
func listsOf(p plot) []lineList {
	lists := []lineList{{Title: "Hot loops", Tone: "bad"}, {Title: "Read, and not watched", Tone: "waiting"}, {Title: "Slowest"}, {Title: "Most frequent"}}
	for _, o := range slices.SortedFunc(maps.Keys(p.Hot), func(a, b journal.Object) int { return cmp.Compare(a.String(), b.String()) }) {
		lists[0].Lines = append(lists[0].Lines, lineOf(o, "%s", p.Hot[o].what))
	}
	for _, text := range p.Unseen {
		lists[1].Lines = append(lists[1].Lines, objectLine{Text: explanation.OneLine(text)})
	}
	for _, s := range p.Slowest {
		if s.took >= 10*time.Millisecond {
			lists[2].Lines = append(lists[2].Lines, lineOf(s.object, "%v", s.took.Round(time.Millisecond)))
		}
	}
	for _, f := range p.Frequent {
		lists[3].Lines = append(lists[3].Lines, lineOf(f.object, "%d×", f.surely))
	}
	return slices.DeleteFunc(lists, func(l lineList) bool { return len(l.Lines) == 0 })
}

// A groupLine is a group of objects in a list.
type groupLine struct {
	group
	Query  template.URL
	First  string       // its first object
	Object template.URL // its page
}

// Words say what the group has in common, in a sentence that begins with its number.
func (g groupLine) Words() string {
	text := g.Text
	if g.Reason != "" && g.Text != "" {
		text = g.Reason + ": " + g.Text
	}
	return cmp.Or(text, g.Reason, string(g.State))
}
