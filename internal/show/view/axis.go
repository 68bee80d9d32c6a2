// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"math"
	"slices"
	"time"
)

// An axis has the place of each time of a timeline. Reconciles take milliseconds and are minutes
// apart, so distances grow with the logarithm of the time between two things that happen: their order
// is that of time, and nothing is too narrow to be seen.
type axis struct {
	times  []time.Time
	places []float64
	gaps   []gap
}

// A gap is a stretch in which nothing happens.
type gap struct {
	X    float64 // of its middle
	Text string
}

const (
	leastStep = 4.0  // between two times that differ
	leastBar  = 22.0 // from the beginning of a reconcile to its end
	leastMark = 9.0  // between two marks
	longGap   = 2 * time.Second
	gapWidth  = 56.0 // of a gap that is named
)

// newAxis places what happens in reconciles, which are sorted by their beginning.
func newAxis(all []*reconcile, now time.Time) *axis {
	a := &axis{}
	add := func(t time.Time) { a.times = append(a.times, t) }
	for _, r := range all {
		add(r.began)
		add(r.end(now))
		for _, s := range r.spans {
			add(s.from)
			add(s.to)
		}
		for _, m := range r.marks {
			add(m.at)
		}
	}
	slices.SortFunc(a.times, time.Time.Compare)
	a.times = slices.CompactFunc(a.times, time.Time.Equal)
	ends := map[int64]time.Time{} // by the end of a reconcile: its beginning
	for _, r := range all {
		ends[r.end(now).UnixNano()] = r.began
	}
	marks := map[int64]bool{}
	for _, r := range all {
		for _, m := range r.marks {
			marks[m.at.UnixNano()] = true
		}
	}
	a.places = make([]float64, len(a.times))
	lastMark := math.Inf(-1)
	for i, t := range a.times {
		x := 0.0
		if i > 0 {
			x = a.places[i-1] + a.step(i, all, now)
		}
		if began, ok := ends[t.UnixNano()]; ok && began.Before(t) {
			x = max(x, a.at(began)+leastBar)
		}
		if marks[t.UnixNano()] {
			x = max(x, lastMark+leastMark)
			lastMark = x
		}
		a.places[i] = x
	}
	return a
}

// step returns the distance of a time from the one before.
func (a *axis) step(i int, all []*reconcile, now time.Time) float64 {
	from, to := a.times[i-1], a.times[i]
	d := to.Sub(from)
	busy := slices.ContainsFunc(all, func(r *reconcile) bool { return r.began.Before(to) && r.end(now).After(from) })
	if !busy && d >= longGap {
		a.gaps = append(a.gaps, gap{a.places[i-1] + gapWidth/2, short(d)})
		return gapWidth
	}
	step := leastStep + 7*math.Log10(1+float64(d)/float64(time.Millisecond))
	if !busy {
		step += leastMark
	}
	return step
}

// stretch moves all places apart, so that the axis is as wide as that at least.
func (a *axis) stretch(width float64) {
	w := a.width()
	if w <= 0 || w >= width {
		return
	}
	for i := range a.places {
		a.places[i] *= width / w
	}
	for i := range a.gaps {
		a.gaps[i].X *= width / w
	}
}

// at returns the place of a time, also of one between those that are known.
func (a *axis) at(t time.Time) float64 {
	i, ok := slices.BinarySearchFunc(a.times, t, time.Time.Compare)
	switch {
	case ok:
		return a.places[i]
	case i == 0 || len(a.times) == 0:
		return 0
	default:
		return a.places[i-1]
	}
}

// width is the place of the last time.
func (a *axis) width() float64 {
	if len(a.places) == 0 {
		return 0
	}
	return a.places[len(a.places)-1]
}

// short returns a duration with its largest unit.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return number(int(d.Minutes()+0.5)) + "m"
	case d < 48*time.Hour:
		return number(int(d.Hours()+0.5)) + "h"
	default:
		return number(int(d.Hours()/24+0.5)) + "d"
	}
}
