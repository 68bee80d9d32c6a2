// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// SummaryPath is where a page has its summary, below its path.
const SummaryPath = "summary"

// A Summary is the overview for programs: what "ctrlkit top" and "ctrlkit explain --all" print. It may
// change with each release.
type Summary struct {
	// Name is what the page is about.
	Name  string      `json:"name"`
	Kinds []KindCount `json:"kinds"`
	// Groups are objects with the same trouble, those that matter most first, and last those that are
	// ready.
	Groups      []Group      `json:"groups"`
	Controllers []Controller `json:"controllers,omitempty"`
	// Notices say what is missing in it.
	Notices []string `json:"notices,omitempty"`
	// Matching is the number of objects that the filter has left of Total.
	Matching int `json:"matching"`
	Total    int `json:"total"`
}

// A KindCount has the objects of a kind by state.
type KindCount struct {
	Kind   string        `json:"kind"`
	Group  string        `json:"group,omitempty"`
	Total  int           `json:"total"`
	States map[State]int `json:"states"`
}

// A Group is objects with the same trouble.
type Group struct {
	State  State     `json:"state"`
	Reason string    `json:"reason,omitempty"`
	Text   string    `json:"text,omitempty"`
	Since  time.Time `json:"since"` // of the one that has it for longest
	Count  int       `json:"count"`
	// Objects are those that have it for longest, a few of them.
	Objects []journal.Object `json:"objects"`
}

// A Controller has the counts of a controller.
type Controller struct {
	Name string `json:"name"`
	// Reconciles and Failed are those of the last hour, LastMinute those of the last whole minute.
	Reconciles int `json:"reconciles"`
	Failed     int `json:"failed"`
	LastMinute int `json:"lastMinute"`
	// Queue is the length of the queue, absent if it is not known.
	Queue    *int     `json:"queue,omitempty"`
	HotLoops []string `json:"hotLoops,omitempty"`
	// Unwatched are reads of what nothing watches.
	Unwatched []string `json:"unwatched,omitempty"`
}

// A Filter says which objects of a summary to group. The zero value is all.
type Filter struct{ Text, Kind, Namespace string }

// Summary returns the summary, as soon as all objects are known, or after two seconds.
func (s *Server) Summary(ctx context.Context, f Filter) Summary {
	t, leave := s.view()
	defer leave()
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
		s.settle(ctx, t)
		if loading, _ := t.loading(); !loading {
			break
		}
	}
	v := &viewing{server: s, table: t, ctx: ctx, now: time.Now()}
	sum := Summary{Name: s.options.Name, Notices: v.noticeTexts()}
	for _, k := range t.tallies() {
		sum.Kinds = append(sum.Kinds, KindCount{k.Kind.Kind, k.Kind.Group, k.Total, k.States})
	}
	chosen := t.choose(filter{Text: f.Text, Kind: f.Kind, Namespace: f.Namespace}, fewRows)
	sum.Matching, sum.Total = chosen.Matching, chosen.Total
	for _, g := range chosen.Groups {
		group := Group{State: g.State, Reason: g.Reason, Text: g.Text, Since: g.Since, Count: g.Count}
		for _, r := range g.Rows {
			group.Objects = append(group.Objects, r.object)
		}
		sum.Groups = append(sum.Groups, group)
	}
	sum.Controllers = v.counts()
	return sum
}

// counts returns the counts of the controllers.
func (v *viewing) counts() []Controller {
	queues := v.queues()
	var all []Controller
	for _, p := range v.server.options.Activity.plots(v.now) {
		c := Controller{Name: p.Name, LastMinute: p.Reconciles[minutes-2]}
		for i, n := range p.Reconciles {
			c.Reconciles += n
			c.Failed += p.Failed[i]
		}
		if n, ok := queues[p.Name]; ok {
			c.Queue = &n
		}
		for o, l := range p.Hot {
			c.HotLoops = append(c.HotLoops, explanation.OneLine(o.String()+": "+l.what))
		}
		for _, text := range p.Unseen {
			c.Unwatched = append(c.Unwatched, explanation.OneLine(text))
		}
		all = append(all, c)
	}
	return all
}

func (s *Server) serveSummary(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Summary(r.Context(), Filter{q.Get("q"), q.Get("kind"), q.Get("namespace")})) // an error means that the client has gone
}

// Problem returns what the objects of a group lack, in a line.
func (g *Group) Problem() string {
	return groupLine{group: group{State: g.State, Reason: g.Reason, Text: g.Text}}.Words()
}
