// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"time"
	_ "time/tzdata" // the time zones are the same wherever the operator runs

	"github.com/robfig/cron/v3"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// countedMissedRuns is how many missed runs are counted. More than that indicates an outage, a long
// suspension or a wrong clock, which is reported to the user.
const countedMissedRuns = 100

// A schedule computes the times at which a CronJob runs. It does not read the clock: the time is an
// argument.
type schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// parseSchedule parses the schedule and the time zone of a spec. Its errors are problems that only
// a change of the spec can solve.
func parseSchedule(spec *v1.CronJobSpec) (schedule, error) {
	zone, err := parseTimeZone(spec.TimeZone)
	if err != nil {
		return schedule{}, &problem{v1.ReasonInvalidTimeZone, err}
	}
	times, err := parseTimes(spec.Schedule)
	if err != nil {
		return schedule{}, &problem{v1.ReasonInvalidSchedule, err}
	}
	return schedule{times: times, zone: zone}, nil
}

func parseTimeZone(name *string) (*time.Location, error) {
	switch {
	case name == nil:
		return time.UTC, nil
	case *name == "" || *name == "Local":
		return nil, fmt.Errorf("time zone %q depends on the operator's machine: name a zone, for example Europe/Paris", *name)
	}
	zone, err := time.LoadLocation(*name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q: use a name of the IANA database, for example Europe/Paris", *name)
	}
	return zone, nil
}

func parseTimes(line string) (cron.Schedule, error) {
	// The parser accepts TZ=, and panics if no space follows.
	if strings.Contains(line, "TZ=") {
		return nil, fmt.Errorf("schedule %q contains a time zone: use timeZone instead", line)
	}
	times, err := cron.ParseStandard(line)
	if err != nil {
		return nil, fmt.Errorf("invalid schedule %q: %w", line, err)
	}
	// The parser changes shorter intervals, even negative ones, to one second.
	if every, ok := strings.CutPrefix(line, "@every "); ok {
		if interval, err := time.ParseDuration(every); err == nil && interval < time.Second {
			return nil, fmt.Errorf("schedule %q is too short: the shortest interval is 1s", line)
		}
	}
	return times, nil
}

// runs are the runs of a schedule at a given time.
type runs struct {
	due    time.Time // the latest time that has passed without a run; zero if there is none
	missed int       // earlier times without a run; at most countedMissedRuns+1
	next   time.Time // the next time
}

// errNeverRuns is the mistake in a schedule such as "0 0 31 2 *".
var errNeverRuns = errors.New("the schedule has no time within the next five years")

// at returns the runs at now, if all times up to and including last were run.
//
// Of several times that have passed, only the latest is due: after an outage, one run is started,
// not all. If last is in the future, because another machine's clock was fast, no run is due before
// it.
func (s schedule) at(last, now time.Time) (runs, error) {
	var r runs
	if r.due = s.latest(last, now); r.due.IsZero() {
		r.next = s.after(last)
	} else {
		r.next = s.after(r.due)
		r.missed = s.count(last, r.due)
	}
	if r.next.IsZero() {
		return runs{}, &problem{v1.ReasonInvalidSchedule, errNeverRuns}
	}
	return r, nil
}

// after returns the first time after t, or zero if there is none. An interval (@every) counts from
// t.
func (s schedule) after(t time.Time) time.Time { return s.times.Next(t.In(s.zone)) }

// latest returns the last time of the schedule in (from, to], or zero if there is none.
//
// Enumerating all times would take long after a year of suspension. They are searched by bisection,
// since the first time after t increases with t.
func (s schedule) latest(from, to time.Time) time.Time {
	if every, ok := s.times.(cron.ConstantDelaySchedule); ok {
		n := to.Sub(from) / every.Delay
		if n <= 0 {
			return time.Time{}
		}
		return from.Add(n * every.Delay)
	}
	timeAfter := func(second int) time.Time { return s.after(from.Add(time.Duration(second) * time.Second)) }
	tooLate := sort.Search(int(to.Sub(from)/time.Second)+1, func(second int) bool {
		t := timeAfter(second)
		return t.IsZero() || t.After(to)
	})
	if tooLate <= 0 {
		return time.Time{}
	}
	return timeAfter(tooLate - 1)
}

// count returns the number of times in (from, to), at most countedMissedRuns+1.
func (s schedule) count(from, to time.Time) int {
	n := 0
	for t := s.after(from); t.Before(to) && n <= countedMissedRuns; t = s.after(t) {
		n++
	}
	return n
}
