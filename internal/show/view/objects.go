// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"html/template"
	"maps"
	"net/url"
	"time"
)

// Limits of the list: of more rows a page has their number.
const (
	mostGroups   = 30
	fewRows      = 5   // of a group among others
	mostRowsOnly = 300 // of the only group
)

// A rowLine is a row in the list.
type rowLine struct {
	row
	Query template.URL
}

func (r rowLine) Name() string      { return r.object.Name }
func (r rowLine) Namespace() string { return r.object.Namespace }
func (r rowLine) Kind() string      { return r.object.Kind }
func (r rowLine) State() State      { return r.state }
func (r rowLine) Message() string   { return r.message }
func (r rowLine) Since() time.Time  { return r.since }

// A chip leads to the same list with another state.
type chip struct {
	State   State
	Count   int
	Query   template.URL
	Current bool
}

func filterOf(q url.Values) filter {
	return filter{Text: q.Get("q"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), State: q.Get("state"), Group: q.Get("group")}
}

// with returns the query with one value changed, without what is no filter.
func (v *viewing) with(key, value string) template.URL {
	q := maps.Clone(v.query)
	q.Del("stream")
	q.Del("version")
	q.Del("screen")
	q.Set(key, value)
	for name := range q {
		if q.Get(name) == "" {
			q.Del(name)
		}
	}
	return encode(q)
}

// objects is the page with the list.
func (v *viewing) objects() block {
	f := filterOf(v.query)
	s := v.table.choose(f, fewRows)
	if len(s.Groups) == 1 {
		s = v.table.choose(f, mostRowsOnly)
	}
	content := append(v.notices(), v.chips(s, f), render("count", "count", struct {
		Matching, Total int
		Filtered        bool
		Namespaces      []string
	}{s.Matching, s.Total, f != filter{}, s.Namespaces}))
	for i, g := range s.Groups {
		if i == mostGroups {
			content = append(content, render("more-groups", "more-groups", len(s.Groups)-mostGroups))
			break
		}
		content = append(content, v.group(g))
	}
	return render("content", "content", nil, content...)
}

func (v *viewing) chips(s selection, f filter) block {
	var all []chip
	for _, state := range states {
		if n := s.States[state]; n > 0 || f.State == string(state) {
			c := chip{state, n, v.with("state", string(state)), f.State == string(state)}
			if c.Current {
				c.Query = v.with("state", "")
			}
			all = append(all, c)
		}
	}
	return render("chips", "chips", struct {
		Chips []chip
		Group template.URL // the address without the group, empty if none is chosen
		Any   bool
	}{all, v.with("group", ""), f.Group != ""})
}

func (v *viewing) group(g group) block {
	rows := make([]block, 0, len(g.Rows))
	for _, r := range g.Rows {
		if r.message == g.Text {
			r.message = "" // it is in the head
		}
		rows = append(rows, render(idOf("o-", r.object), "row", rowLine{r, queryOf(r.object)}))
	}
	id := "g-" + g.Key
	return render(id, "group", nil,
		render(id+"-head", "group-head", groupLine{group: g}),
		render(id+"-table", "group-table", nil, render(id+"-rows", "group-rows", nil, rows...)),
		render(id+"-more", "group-more", groupMore{len(g.Rows), g.Count, v.with("group", g.Key)}))
}

// A groupMore says how many rows of a group are not shown.
type groupMore struct {
	Shown, Count int
	Query        template.URL
}

func (m groupMore) Rest() int  { return m.Count - m.Shown }
func (m groupMore) Only() bool { return m.Shown >= mostRowsOnly }
