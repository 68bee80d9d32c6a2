// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// A Budget says how many of the plans are run. The zero value is all of them.
type Budget struct {
	Time time.Duration // in which plans are begun; zero: there is no limit

	name   string
	places int // at how many places each kind of fault is tried; zero: at all
}

// budgets are those that have a name. Which plans one has depends on nothing but the operator and
// the script: it is the same on each machine.
var budgets = map[string]Budget{
	"smoke": {name: "smoke", places: 1},
	"quick": {name: "quick", places: 4},
	"full":  {},
}

// ParseBudget reads the name of a budget, or a time.
func ParseBudget(text string) (Budget, error) {
	if text == "" {
		return Budget{}, nil
	}
	if b, ok := budgets[text]; ok {
		return b, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return Budget{name: text, Time: d}, nil
	}
	return Budget{}, fmt.Errorf("budget %q: want %s, or a time such as 90s or 10m", text, strings.Join(slices.Sorted(maps.Keys(budgets)), ", "))
}

// String returns the name of the budget, or its time.
func (b Budget) String() string { return cmp.Or(b.name, b.Time.String()) }

// of returns which of the plans are in the budget, in order.
func (b Budget) of(plans []fault.Plan, at sites) []int {
	most := cmp.Or(b.places, math.MaxInt)
	tried := map[string]int{}
	var list []int
	for _, i := range telling(plans, at) {
		kind := triedBy(plans[i])
		if tried[kind]++; tried[kind] <= most || len(plans[i].Faults) == 0 && plans[i].Transition == "" {
			list = append(list, i)
		}
	}
	slices.Sort(list)
	return list
}

// The kinds of plans with two faults and with more, for budgets and for what was not run.
const (
	pairsKind  = "pairs"
	swarmsKind = "swarms"
)

// triedBy returns what is tried by a plan: its kind of fault, as plans name it, with N for each
// number and X for each object.
func triedBy(p fault.Plan) string {
	switch len(p.Faults) {
	case 0:
		if p.Transition != "" {
			return "change: " + kindOfChange(p)
		}
		return "no fault"
	case 1:
		return p.Faults[0].Kind.Plain(p.Faults[0].How)
	case 2:
		return pairsKind
	}
	return swarmsKind
}

// notRun says of which kinds plans were not run, the kind of which most are left first.
func notRun(all []fault.Plan, run func(i int) bool) []report.NotRun {
	kinds := map[string]*report.NotRun{}
	for i, p := range all {
		k := kinds[triedBy(p)]
		if k == nil {
			k = &report.NotRun{Kind: triedBy(p)}
			kinds[k.Kind] = k
		}
		k.Total++
		if !run(i) {
			k.Plans++
		}
	}
	var list []report.NotRun
	for _, k := range kinds {
		if k.Plans > 0 {
			list = append(list, *k)
		}
	}
	report.SortNotRun(list)
	return list
}
