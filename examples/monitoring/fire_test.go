// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// The alerts fire for recorded series, or leave them alone. The series begin at time 0, with a value
// each minute, and are of an operator in the cluster.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, series string
		want         string // the alerts that fire, with the time at which they begin to
	}{
		{"all is well", `
			ctrlkit_reconciles_total{controller="database",result="done"} 0+10x180
			ctrlkit_stalled_objects{controller="database"} 0x180
			leader_election_master_status{name="database"} 1x180`, ""},
		{"an object is Stalled since the start", `
			ctrlkit_reconciles_total{controller="database",result="stalled"} 1x180
			ctrlkit_stalled_oldest_timestamp_seconds{controller="database"} 0x180`, "OperatorObjectStalled 1h6"},
		{"another one after the other, each repaired within half an hour", `
			ctrlkit_stalled_oldest_timestamp_seconds{controller="database"} 0x30 1800x30 3600x30 5400x30 7200x30`, ""},
		{"what was Stalled is repaired after an hour", `
			ctrlkit_stalled_oldest_timestamp_seconds{controller="database"} 0x60 _x120`, ""},
		{"another object of the controller is repaired", `
			ctrlkit_stalled_oldest_timestamp_seconds{controller="database"} 0x30 1800x150`, "OperatorObjectStalled 1h36"},
		{"the spec is refused, once an hour", `
			ctrlkit_reconciles_total{controller="database",result="failed"} 0x9 1x59 2x59 3x59
			ctrlkit_failures_total{controller="database",class="Invalid"} 0x9 1x59 2x59 3x59`, "OperatorNeedsAPerson 25"},
		{"a race for an object is lost now and then", `
			ctrlkit_reconciles_total{controller="database",result="done"} 0+10x180
			ctrlkit_reconciles_total{controller="database",result="failed"} 0+1x180
			ctrlkit_failures_total{controller="database",class="Conflict"} 0+1x180`, ""},
		{"an object waits for two hours, and one is deleted for one", `
			ctrlkit_objects_unready_oldest_timestamp_seconds{kind="Database"} 0x120 _x60
			ctrlkit_objects_deleting_oldest_timestamp_seconds{kind="Database"} 0x59 _x120`, ""},
		{"a deletion hangs", `
			ctrlkit_objects_deleting_oldest_timestamp_seconds{kind="Database"} 0x180`, "OperatorDeletionHangs 1h6"},
		{"an object was not ready before the process started", `
			ctrlkit_objects_unready_oldest_timestamp_seconds{kind="Database"} -7200x180`, "OperatorObjectNotReady 1h6"},
		{"a call without a deadline", `
			workqueue_longest_running_processor_seconds{controller="database"} 0+60x180`, "OperatorStuck 11"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := firing(t, tt.series); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// firing evaluates all alerts every minute for three hours. Like Prometheus, it has one fire that has
// been true for its time.
func firing(t *testing.T, series string) string {
	all := recordedOf(t, series)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 100000, Timeout: time.Minute})
	t.Cleanup(func() { _ = engine.Close() })
	var fired []string
	for _, r := range alertRules(t) {
		var held time.Duration
		for at := time.Duration(0); at < 3*time.Hour; at += time.Minute {
			query, err := engine.NewInstantQuery(t.Context(), all, nil, r.Expr, time.Unix(0, 0).Add(at))
			if err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			result := query.Exec(t.Context())
			found, err := result.Vector()
			if err != nil {
				t.Fatalf("%s: %v", r.Alert, err)
			}
			if len(found) == 0 {
				held = 0
				continue
			}
			if held >= time.Duration(r.For) {
				fired = append(fired, r.Alert+" "+strings.TrimSuffix(at.String(), "m0s"))
				break
			}
			held += time.Minute
		}
	}
	return strings.Join(fired, ", ")
}

// recorded are series that can be queried. A query is answered with those from at on.
type recorded struct {
	series []promql.Series
	at     int
}

// recordedOf parses series, each on a line, in the notation of promtool.
func recordedOf(t *testing.T, text string) storage.Queryable {
	var all recorded
	for line := range strings.Lines(strings.TrimSpace(text)) {
		metric, values, err := parser.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		series := promql.Series{Metric: metric}
		for minute, v := range values {
			if !v.Omitted {
				series.Floats = append(series.Floats, promql.FPoint{T: int64(minute) * time.Minute.Milliseconds(), F: v.Value})
			}
		}
		all.series = append(all.series, series)
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{SelectMockFunction: all.find}}
}

func (r *recorded) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := recorded{at: -1}
	for _, series := range r.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(series.Metric.Get(m.Name)) }) {
			found.series = append(found.series, series)
		}
	}
	return &found
}

func (r *recorded) Next() bool                        { r.at++; return r.at < len(r.series) }
func (r *recorded) At() storage.Series                { return promql.NewStorageSeries(r.series[r.at]) }
func (r *recorded) Err() error                        { return nil }
func (r *recorded) Warnings() annotations.Annotations { return nil }
