// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"math/bits"
	"regexp"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// telling returns the places of plans in the order in which they are begun: those first of which
// much can be learned when there is little time. Plans without faults come first. Then the kinds of
// faults, or of transitions, take turns, those more often that find more; each kind strikes first
// where it has not struck yet, and there first where no other kind has, at places all over the run.
// Repeated reads show what the first one has, and follow. Pairs come last, and swarms after them.
func telling(plans []fault.Plan, at sites) []int { return inTurns(plans, at, weightOf) }

// Order returns the places in a list of plans in the order in which they are begun. The places of the
// run without faults may be unknown.
func Order(plans []fault.Plan, places []fault.Place) []int { return telling(plans, sitesOf(places)) }

// inTurns is telling, with other weights of the kinds of faults.
func inTurns(plans []fault.Plan, at sites, weight func(fault.Fault) int) []int {
	var none, pairs []int
	first, repeated := &turns{at: at, used: map[string]int{}}, &turns{at: at, used: map[string]int{}}
	for i, p := range plans {
		turns := first
		if at.of(p).repeated {
			turns = repeated
		}
		switch n := len(p.Faults); {
		case p.Transition != "" && n == 0:
			turns.add(kindOfChange(p), usual, i)
		case n == 0:
			none = append(none, i)
		case n == 1:
			f := p.Faults[0]
			turns.add(f.Kind.String()+f.How, weight(f), i)
		default:
			pairs = append(pairs, i)
		}
	}
	return slices.Concat(none, first.order(plans), repeated.order(plans), pairs)
}

// usual is the weight of a kind of fault: it has so many turns while one of twice the weight has
// twice as many.
const usual = 2

// weightOf returns the weight of the kind of a fault, by how many kinds of findings it has shown in
// each of seven public operators.
func weightOf(f fault.Fault) int {
	switch f.Kind {
	case fault.OccupyName:
		return 8
	case fault.OccupyNameByController:
		return 6
	case fault.FailCall, fault.ThrottleCall:
		return 4
	case fault.DeleteBeforeWrite, fault.LandLate, fault.LeaveOrphan, fault.PanicAtCall:
		return 3
	case fault.RefuseWrite:
		if slices.Contains([]string{"500", "403", "422"}, f.How) {
			return 4
		}
	}
	return usual
}

// turns are the kinds of faults that take turns.
type turns struct {
	kinds []*kindOfFault
	at    sites
	used  map[string]int // plans that strike at a site
}

// kindOfFault is the plans of one kind of fault.
type kindOfFault struct {
	name   string
	weight int
	plans  []int
	sites  []*spot // of plans that are left
	had    int     // turns so far
}

// spot is what is done at some places of a run.
type spot struct {
	name  string
	plans []int // that are left
	had   int   // of the kind
}

func (t *turns) add(name string, weight, plan int) {
	i := slices.IndexFunc(t.kinds, func(k *kindOfFault) bool { return k.name == name })
	if i < 0 {
		i = len(t.kinds)
		t.kinds = append(t.kinds, &kindOfFault{name: name, weight: weight})
	}
	t.kinds[i].plans = append(t.kinds[i].plans, plan)
}

// order returns the plans in the order of the turns.
func (t *turns) order(plans []fault.Plan) []int {
	left := 0
	for _, k := range t.kinds {
		left += len(k.plans)
		for _, i := range spread(k.plans) {
			k.addAt(t.at.of(plans[i]).name, i)
		}
	}
	order := make([]int, 0, left)
	for range left {
		kinds := slices.DeleteFunc(slices.Clone(t.kinds), func(k *kindOfFault) bool { return len(k.sites) == 0 })
		next := slices.MinFunc(kinds, func(a, b *kindOfFault) int { return cmp.Compare((a.had+1)*b.weight, (b.had+1)*a.weight) })
		order = append(order, next.take(t.used))
	}
	return order
}

func (k *kindOfFault) addAt(name string, plan int) {
	i := slices.IndexFunc(k.sites, func(s *spot) bool { return s.name == name })
	if i < 0 {
		i = len(k.sites)
		k.sites = append(k.sites, &spot{name: name})
	}
	k.sites[i].plans = append(k.sites[i].plans, plan)
}

// take returns the next plan of the kind.
func (k *kindOfFault) take(used map[string]int) (plan int) {
	s := slices.MinFunc(k.sites, func(a, b *spot) int { return cmp.Or(a.had-b.had, used[a.name]-used[b.name]) })
	plan, s.plans = s.plans[0], s.plans[1:]
	s.had++
	k.had++
	used[s.name]++
	if len(s.plans) == 0 {
		k.sites = slices.DeleteFunc(k.sites, func(other *spot) bool { return other == s })
	}
	return plan
}

// sites has what is done at places of a run, by the place.
type sites map[placeKey]site

// site is what is done at a place, and whether it is the same as before, with nothing changed since.
type site struct {
	name     string
	repeated bool
}

// placeKey is a place: which of its point, and at events of which kind.
type placeKey struct {
	point fault.Point
	at    int
	of    string
}

// numbers are what two sites of one kind may differ in, such as the ordinals of Pods.
var numbers = regexp.MustCompile(`\d+`)

// sitesOf returns the sites of places.
func sitesOf(places []fault.Place) sites {
	at := sites{}
	for _, p := range places {
		at[placeOf(p.Point, p.At, p.Of)] = site{numbers.ReplaceAllString(p.Site, "N"), p.Repeated}
	}
	return at
}

// placeOf returns a place as a key.
func placeOf(point fault.Point, at int, of string) placeKey {
	if point != fault.AtEvent {
		of = ""
	}
	return placeKey{point, at, of}
}

// of returns the site of a plan with one fault; the zero value where it is not known.
func (at sites) of(p fault.Plan) site {
	if len(p.Faults) != 1 || p.Transition != "" {
		return site{}
	}
	f := p.Faults[0]
	return at[placeOf(f.Kind.Point(), f.At, f.Of)]
}

// kindOfChange returns in which way a transition changes a property, by its name.
func kindOfChange(p fault.Plan) string {
	_, kind, _ := strings.Cut(p.Transition, ": ")
	kind, _, _ = strings.Cut(kind, ",")
	return kind
}

// spread orders a list so that each beginning of it has elements from all over it: the first, the
// middle one, those at the quarters, and so on.
func spread(list []int) []int {
	width := bits.Len(uint(max(0, len(list)-1)))
	out := make([]int, 0, len(list))
	for n := range 1 << width {
		if i := int(bits.Reverse64(uint64(n)) >> (64 - width)); i < len(list) {
			out = append(out, list[i])
		}
	}
	return out
}

// sample returns which n of the plans belong to a sample, in order. It has as many kinds of faults as
// it can, and depends on nothing but where they can strike.
func sample(plans []fault.Plan, n int) []int {
	order := inTurns(plans, nil, func(fault.Fault) int { return usual })
	firstPair := slices.IndexFunc(order, func(i int) bool { return len(plans[i].Faults) > 1 })
	if firstPair < 0 {
		firstPair = len(order)
	}
	pairs := min(n/5, len(order)-firstPair) // and swarms
	list := slices.Concat(order[:min(n-pairs, firstPair)], order[firstPair:firstPair+pairs])
	slices.Sort(list)
	return list
}
