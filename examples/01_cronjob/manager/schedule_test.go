// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
)

// A wantedRuns is what a schedule says at a time.
type wantedRuns struct {
	due, next string
	missed    int
}

// A scheduleCase is a case of TestScheduleAt.
type scheduleCase struct {
	name      string
	schedule  string
	zone      string
	last, now string
	want      wantedRuns
}

var scheduleCases = []scheduleCase{
	{"nothing is due yet", "*/5 * * * *", "",
		"2026-05-01T12:05:00Z", "2026-05-01T12:09:59Z", wantedRuns{next: "2026-05-01T12:10:00Z"}},
	{"due on the second", "*/5 * * * *", "",
		"2026-05-01T12:05:00Z", "2026-05-01T12:10:00Z", wantedRuns{due: "2026-05-01T12:10:00Z", next: "2026-05-01T12:15:00Z"}},
	{"of several that were missed only the latest is due", "*/5 * * * *", "",
		"2026-05-01T12:00:00Z", "2026-05-01T12:17:00Z", wantedRuns{due: "2026-05-01T12:15:00Z", missed: 2, next: "2026-05-01T12:20:00Z"}},
	{"a hundred missed are counted", "* * * * *", "",
		"2026-05-01T12:00:00Z", "2026-05-01T13:41:00Z", wantedRuns{due: "2026-05-01T13:41:00Z", missed: 100, next: "2026-05-01T13:42:00Z"}},
	{"after years of suspension the count stops and the latest is still found", "* * * 1 *", "",
		"2020-05-01T12:00:00Z", "2026-05-01T12:00:00Z", wantedRuns{due: "2026-01-31T23:59:00Z", missed: 101, next: "2027-01-01T00:00:00Z"}},
	{"descriptor", "@hourly", "",
		"2026-05-01T12:20:00Z", "2026-05-01T13:00:01Z", wantedRuns{due: "2026-05-01T13:00:00Z", next: "2026-05-01T14:00:00Z"}},
	{"an interval counts from the last run", "@every 10s", "",
		"2026-05-01T12:00:03Z", "2026-05-01T12:00:25Z", wantedRuns{due: "2026-05-01T12:00:23Z", missed: 1, next: "2026-05-01T12:00:33Z"}},
	{"an interval is due on the second", "@every 10s", "",
		"2026-05-01T12:00:03Z", "2026-05-01T12:00:13Z", wantedRuns{due: "2026-05-01T12:00:13Z", next: "2026-05-01T12:00:23Z"}},
	{"an interval that has not passed", "@every 1h30m", "",
		"2026-05-01T12:00:00Z", "2026-05-01T13:29:59Z", wantedRuns{next: "2026-05-01T13:30:00Z"}},
	{"the last run was started by a clock that was fast", "*/5 * * * *", "",
		"2026-05-01T12:10:00Z", "2026-05-01T12:06:00Z", wantedRuns{next: "2026-05-01T12:15:00Z"}},
	{"an interval whose last run was started by a clock that was fast", "@every 1m", "",
		"2026-05-01T12:10:00Z", "2026-05-01T12:06:00Z", wantedRuns{next: "2026-05-01T12:11:00Z"}},
	{"time zone in winter", "0 9 * * *", "Europe/Berlin",
		"2026-01-10T09:00:00Z", "2026-01-11T08:00:00Z", wantedRuns{due: "2026-01-11T08:00:00Z", next: "2026-01-12T08:00:00Z"}},
	{"time zone in summer", "0 9 * * *", "Europe/Berlin",
		"2026-07-10T09:00:00Z", "2026-07-11T07:00:00Z", wantedRuns{due: "2026-07-11T07:00:00Z", next: "2026-07-12T07:00:00Z"}},
	// On 29 March 2026 the clocks went from 2:00 to 3:00.
	{"a time that the change to summer time omits has no run", "30 2 * * *", "Europe/Berlin",
		"2026-03-28T01:30:00Z", "2026-03-28T12:00:00Z", wantedRuns{next: "2026-03-30T00:30:00Z"}},
	// On 25 October 2026 the clocks went from 3:00 to 2:00.
	{"a time that the change to winter time repeats has two runs", "30 2 * * *", "Europe/Berlin",
		"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", wantedRuns{due: "2026-10-25T01:30:00Z", next: "2026-10-26T01:30:00Z"}},
	{"an hourly schedule is hourly through the change to winter time", "0 * * * *", "Europe/Berlin",
		"2026-10-24T23:00:00Z", "2026-10-25T02:00:00Z", wantedRuns{due: "2026-10-25T02:00:00Z", missed: 2, next: "2026-10-25T03:00:00Z"}},
}

func TestScheduleAt(t *testing.T) {
	for _, tt := range scheduleCases {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseSchedule(&v1.CronJobSpec{Schedule: tt.schedule, TimeZone: zoneOrNil(tt.zone)})
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.at(at(tt.last), at(tt.now))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, wantedRuns{text(got.due), text(got.next), got.missed}, cmp.AllowUnexported(wantedRuns{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMistakesInTheSpec(t *testing.T) {
	tests := []struct {
		name, schedule string
		zone           *string
		wantReason     string
		wantText       string
	}{
		{"not a schedule", "every day", nil, v1.ReasonInvalidSchedule, `invalid schedule "every day"`},
		{"empty", "", nil, v1.ReasonInvalidSchedule, `invalid schedule ""`},
		{"with seconds", "* * * * * *", nil, v1.ReasonInvalidSchedule, "invalid schedule"},
		{"interval without a unit", "@every 10", nil, v1.ReasonInvalidSchedule, "invalid schedule"},
		{"negative interval", "@every -1h", nil, v1.ReasonInvalidSchedule, "the shortest interval is 1s"},
		{"interval below a second", "@every 10ms", nil, v1.ReasonInvalidSchedule, "the shortest interval is 1s"},
		{"time zone in the schedule", "CRON_TZ=Asia/Tokyo 0 9 * * *", nil, v1.ReasonInvalidSchedule, "use timeZone"},
		{"a schedule that crashes the parser", "TZ=0", nil, v1.ReasonInvalidSchedule, "use timeZone"},
		{"a day that never comes", "0 0 31 2 *", nil, v1.ReasonInvalidSchedule, "no time within"},
		{"unknown time zone", "@daily", ptr.To("Europe/Atlantis"), v1.ReasonInvalidTimeZone, `unknown time zone "Europe/Atlantis"`},
		{"the time zone of the machine", "@daily", ptr.To("Local"), v1.ReasonInvalidTimeZone, "name a zone"},
		{"empty time zone", "@daily", ptr.To(""), v1.ReasonInvalidTimeZone, "name a zone"},
		{"a path as time zone", "@daily", ptr.To("../../etc/passwd"), v1.ReasonInvalidTimeZone, "unknown time zone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := parseSchedule(&v1.CronJobSpec{Schedule: tt.schedule, TimeZone: tt.zone})
			if err == nil {
				_, err = s.at(at("2026-05-01T12:00:00Z"), at("2026-05-01T12:01:00Z"))
			}
			var p *problem
			if !errors.As(err, &p) || p.reason != tt.wantReason {
				t.Fatalf("got error %v, want a problem with reason %s", err, tt.wantReason)
			}
			if !strings.Contains(err.Error(), tt.wantText) {
				t.Errorf("got %q, want it to say %q", err, tt.wantText)
			}
		})
	}
}

// What is found by bisection is what stepping through all times would find, also where clocks
// change.
func TestLatestIsTheLastOfAll(t *testing.T) {
	schedules := []string{"* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 * * *", "0 1,2,3 * * *", "15 */5 * * 0", "@every 17m", "59 23 28-31 * *"}
	zones := []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo", "America/New_York"}
	rapid.Check(t, func(t *rapid.T) {
		spec := &v1.CronJobSpec{
			Schedule: rapid.SampledFrom(schedules).Draw(t, "schedule"),
			TimeZone: ptr.To(rapid.SampledFrom(zones).Draw(t, "zone")),
		}
		// Brazil had summer time, which began at midnight, until 2019.
		last := at("2018-01-01T00:00:00Z").Add(time.Duration(rapid.Int64Range(0, 2*365*24*3600).Draw(t, "last")) * time.Second)
		now := last.Add(time.Duration(rapid.Int64Range(-3600, 5*24*3600).Draw(t, "elapsed")) * time.Second)
		s, err := parseSchedule(spec)
		if err != nil {
			t.Fatal(err)
		}

		var want runs
		n := 0
		for want.next = s.after(last); !want.next.After(now); want.next = s.after(want.next) {
			want.due = want.next
			n++
		}
		want.missed = min(max(n-1, 0), countedMissedRuns+1)

		got, err := s.at(last, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(runs{})); diff != "" {
			t.Errorf("from %s to %s (-want +got)\n%s", text(last), text(now), diff)
		}
	})
}

func zoneOrNil(name string) *string {
	if name == "" {
		return nil
	}
	return &name
}

func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func text(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
