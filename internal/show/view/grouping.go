// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// name matches the name of an object.
const name = `[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?`

var (
	namespaced = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]* ` + name + `/` + name + `\b`)
	awaited    = regexp.MustCompile(`\bwaits for ([A-Z][A-Za-z0-9]* ` + name + `)(?:$|[,:;])`)
	words      = regexp.MustCompile(`[A-Za-z0-9_./:-]+`)
	quantity   = regexp.MustCompile(`^(?:[0-9]+[.,:/]?[A-Za-z%]{0,3})+[.:]?$`)
	numbers    = regexp.MustCompile(`[0-9]+`)
	uids       = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
)

// objectIn returns the object that a message is about: the only one that it names with its namespace,
// or the one without a namespace for which it waits. It is empty if there is none, or more than one.
func objectIn(message string) string {
	if found := namespaced.FindAllString(message, 2); len(found) > 0 {
		if len(found) == 2 && found[0] != found[1] {
			return ""
		}
		return found[0]
	}
	if found := awaited.FindStringSubmatch(message); found != nil {
		return found[1]
	}
	return ""
}

// common returns the message without what differs between objects with the same trouble: the name of
// the object, and numbers. Names of other objects stay as they are, also if they have numbers.
func (r *row) common() string {
	return words.ReplaceAllStringFunc(uids.ReplaceAllString(r.message, "…"), func(word string) string {
		switch _, err := netip.ParseAddr(word); {
		case word == r.object.Name:
			return "…"
		case err != nil && quantity.MatchString(word):
			return numbers.ReplaceAllString(word, "#")
		default:
			return word
		}
	})
}

// vague returns the message without what differs between objects with troubles that are alike: also
// the names of other objects that have the object's own in theirs, or numbers.
func (r *row) vague() string {
	text := uids.ReplaceAllString(r.message, "…")
	if r.about != "" {
		kind, _, _ := strings.Cut(r.about, " ")
		text = strings.ReplaceAll(text, r.about, kind+" …")
	}
	if len(r.object.Name) > 2 {
		text = strings.ReplaceAll(text, r.object.Name, "…")
	}
	return numbers.ReplaceAllString(text, "#")
}

// trouble returns what the row says of its trouble: the message, and what that is about.
func (r *row) trouble() string {
	if r.about == "" || strings.Contains(r.message, r.about) {
		return r.message
	}
	return strings.TrimPrefix(r.message+": "+r.about, ": ")
}

// keys returns the keys of an object with its trouble, also if the result of the last reconcile is
// known of some objects only: the same one is about the same object, or says the same.
func (r *row) keys() (group, alike string) {
	state := r.state
	if state == Waiting || state == Failing {
		state = NotReady
	}
	key := func(parts ...string) string {
		h := fnv.New64a()
		_, _ = h.Write([]byte(strings.Join(parts, "\x00"))) // never fails
		return strconv.FormatUint(h.Sum64(), 36)
	}
	return key("same", string(state), r.reason, cmp.Or(r.about, r.common())), key("alike", string(state), r.reason, r.vague())
}

// A group is rows with the same trouble, or with troubles that are alike.
type group struct {
	Key    string
	State  State
	Reason string
	Text   string // what all have in common
	Since  time.Time
	Count  int
	Rows   []row // those that have it for longest, the first ones

	same   bool           // whether all messages are the same
	values map[string]int // how often there is which object, of troubles that are alike
}

// mostSame is how many groups there are of troubles that are alike: more are one group.
const mostSame = 5

// grouped returns the groups of rows, those that matter most first, with at most so many rows of
// each. With whole, more groups of troubles that are alike are one.
func grouped(rows []*row, most int, whole bool) []group {
	var many map[string]bool
	if whole {
		many = manySame(rows)
	}
	groups := map[string]*group{}
	for _, r := range rows {
		key := r.group
		if many[r.alike] {
			key = r.alike
		}
		g := groups[key]
		if g == nil {
			g = &group{Key: key, State: r.state, Reason: r.reason, Text: r.trouble(), Since: r.since, same: true}
			if many[r.alike] {
				g.Text, g.same, g.values = r.vague(), false, map[string]int{}
			}
			groups[key] = g
		}
		g.add(r, most)
	}
	all := make([]group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.Rows, longest)
		g.Rows = g.Rows[:min(len(g.Rows), most)]
		g.Text += g.largest()
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b group) int {
		return cmp.Or(a.State.rank()-b.State.rank(), b.Count-a.Count, cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Text, b.Text), cmp.Compare(a.Key, b.Key))
	})
	return all
}

// manySame returns the keys of troubles that are alike and of which there are many.
func manySame(rows []*row) map[string]bool {
	few, many := map[string][]string{}, map[string]bool{}
	for _, r := range rows {
		switch seen := few[r.alike]; {
		case many[r.alike], slices.Contains(seen, r.group):
		case len(seen) == mostSame:
			many[r.alike] = true
		default:
			few[r.alike] = append(seen, r.group)
		}
	}
	return many
}

// add counts a row, and keeps it if it may be one of the first.
func (g *group) add(r *row, most int) {
	g.Count++
	if g.same && r.trouble() != g.Text {
		g.Text, g.same = cmp.Or(r.about, r.common()), false
	}
	if g.values != nil && r.about != "" {
		g.values[r.about]++
	}
	if g.State == NotReady || r.state != NotReady && r.state.rank() < g.State.rank() {
		g.State = r.state
	}
	if r.since.Before(g.Since) {
		g.Since = r.since
	}
	if g.Rows = append(g.Rows, *r); len(g.Rows) >= 4*most+64 {
		slices.SortFunc(g.Rows, longest)
		g.Rows = g.Rows[:most]
	}
}

// largest names the three objects that most rows of the group are about.
func (g *group) largest() string {
	all := slices.SortedFunc(maps.Keys(g.values), func(a, b string) int { return cmp.Or(g.values[b]-g.values[a], cmp.Compare(a, b)) })
	if len(all) == 0 {
		return ""
	}
	texts := make([]string, 0, 4)
	for _, value := range all[:min(len(all), 3)] {
		text := value
		if n := g.values[value]; n > 1 {
			text += fmt.Sprintf(" (%d)", n)
		}
		texts = append(texts, text)
	}
	if more := len(all) - len(texts); more > 0 {
		return fmt.Sprintf(": %s and %d more", strings.Join(texts, ", "), more)
	}
	return ": " + strings.Join(texts, ", ")
}

func longest(a, b row) int {
	return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.object.Kind, b.object.Kind), cmp.Compare(a.object.Namespace, b.object.Namespace), cmp.Compare(a.object.Name, b.object.Name))
}
