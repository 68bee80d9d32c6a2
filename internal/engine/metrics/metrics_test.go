// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ctrlkit/ctrlkit/internal/engine/metrics"
	"github.com/ctrlkit/ctrlkit/journal"
)

var (
	errRefused = errors.New("connection refused")
	failed     = journal.Outcome{Err: errRefused, Class: "TemporaryError"}
	waiting    = journal.Outcome{Waits: []journal.Wait{{For: "Job default/db"}}, RequeueAfter: time.Second}
	database   = journal.Object{Group: "example.com", Kind: "Database", Namespace: "default", Name: "db"}
)

// feed passes the events of one reconcile to the observer.
func feed(o journal.Observer, controller string, object journal.Object, events ...journal.Event) {
	run := journal.NewRun(o, "1", controller, object)
	for _, e := range events {
		run.Note(context.Background(), e)
	}
}

func observer(t *testing.T, registry prometheus.Registerer, options metrics.Options) *metrics.Metrics {
	t.Helper()
	m, err := metrics.New(registry, options)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// expect compares series of these names with the text; without names it compares all.
func expect(t *testing.T, registry prometheus.Gatherer, want string, names ...string) {
	t.Helper()
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

// One reconcile with each result, and all series that follow.
func TestSeries(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := observer(t, registry, metrics.Options{})
	feed(m, "database", database,
		journal.Triggered{Cause: journal.Cause{Kind: journal.CauseOwnChange}},
		journal.Started{Causes: []journal.Cause{
			{Kind: journal.CauseOwnChange, Times: 2},
			{Kind: journal.CauseChildChange, Times: 3, Object: journal.Object{Kind: "Secret", Name: "a"}},
			{Kind: journal.CauseChildChange, Object: journal.Object{Kind: "Secret", Name: "b"}},
		}},
		journal.StepBegan{Step: "Account", Phase: journal.PhaseDo},
		journal.Read{Step: "Account", Object: database},
		journal.Wrote{Step: "Account", Verb: "create", Object: journal.Object{Kind: "Secret", Name: "a"}},
		journal.Wrote{Step: "Account", Verb: "create", Object: journal.Object{Kind: "Secret", Name: "b"}, Err: errRefused},
		journal.StepEnded{Step: "Account", Phase: journal.PhaseDo, Duration: 20 * time.Millisecond},
		journal.StepBegan{Step: "Run", Phase: journal.PhaseDo},
		journal.ActionBegan{Step: "Run", Action: "Migrate"},
		journal.ActionEnded{Step: "Run", Action: "Migrate", Outcome: waiting, Duration: 3 * time.Second},
		journal.ActionBegan{Step: "Run", Action: "Backup"},
		journal.ActionEnded{Step: "Run", Action: "Backup", Outcome: failed, Duration: 2 * time.Minute},
		journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: failed, Duration: 2 * time.Minute},
		journal.StepEnded{Step: "Account", Phase: journal.PhasePost, Outcome: journal.Outcome{RequeueAfter: time.Hour}},
		journal.Wrote{Verb: "patch", Object: database, Subresource: "status"},
		journal.HotLoop{Reconciles: 12},
		journal.Requeued{After: time.Second, Why: "backoff", Failures: 1},
		journal.Finished{Result: journal.ResultFailed, Outcome: failed, Duration: 2 * time.Minute},
	)
	feed(m, "database", database,
		journal.Started{Causes: []journal.Cause{{Kind: journal.CauseBackoff, Times: 1}}},
		journal.Finished{Result: journal.ResultWaiting, Outcome: waiting})
	feed(m, "database", database,
		journal.Started{Causes: []journal.Cause{{Kind: journal.CauseTimer, Times: 1}}},
		journal.Finished{Result: journal.ResultDone})
	feed(m, "database", database, journal.Finished{Result: journal.ResultStalled, Stalled: time.Unix(1700000000, 0)})

	want, err := os.ReadFile("testdata/series.txt")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, registry, string(want))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("the names are not as Prometheus wants them: %v %v", problems, err)
	}
}

func TestFailuresByClass(t *testing.T) {
	for _, tt := range []struct {
		name    string
		outcome journal.Outcome
		want    string
	}{
		{"done", journal.Outcome{}, ""},
		{"a wait", waiting, ""},
		{"a requeue", journal.Outcome{RequeueAfter: time.Second}, ""},
		{"a failure beside a wait", journal.Outcome{Err: errRefused, Class: "Forbidden", Waits: waiting.Waits}, "Forbidden"},
		{"without a class", journal.Outcome{Err: errRefused}, "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			feed(observer(t, registry, metrics.Options{}), "database", database, journal.Finished{Result: journal.ResultWaiting, Outcome: tt.outcome})
			want := ""
			if tt.want != "" {
				want = "# HELP ctrlkit_failures_total Reconciles that failed, by the class of the failure. A wait is not a failure.\n" +
					"# TYPE ctrlkit_failures_total counter\n" +
					fmt.Sprintf("ctrlkit_failures_total{class=%q,controller=\"database\"} 1\n", tt.want)
			}
			expect(t, registry, want, "ctrlkit_failures_total")
		})
	}
}

// Observers of one registry add up, whether they are asked for the same series or not.
func TestSharedRegistry(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, o := range []*metrics.Metrics{
		observer(t, registry, metrics.Options{}),
		observer(t, registry, metrics.Options{PerObject: metrics.PerObjectEach}),
		observer(t, registry, metrics.Options{PerObject: metrics.PerObjectEach}),
		observer(t, prometheus.WrapRegistererWithPrefix("", registry), metrics.Options{}),
	} {
		feed(o, "database", database, journal.Finished{Result: journal.ResultFailed, Outcome: failed})
	}
	expect(t, registry, `
# HELP ctrlkit_object_failures Reconciles of the object that failed in a row.
# TYPE ctrlkit_object_failures gauge
ctrlkit_object_failures{controller="database",name="db",namespace="default"} 2
# HELP ctrlkit_reconciles_total Reconciles, by result.
# TYPE ctrlkit_reconciles_total counter
ctrlkit_reconciles_total{controller="database",result="failed"} 4
`, "ctrlkit_reconciles_total", "ctrlkit_object_failures")
}

// Objects that are stalled are counted, with the time of the oldest, until they no longer are.
func TestStalled(t *testing.T) {
	at := func(second int64) journal.Finished {
		return journal.Finished{Result: journal.ResultStalled, Stalled: time.Unix(second, 0)}
	}
	failedAt := journal.Finished{Result: journal.ResultFailed, Outcome: failed, Stalled: time.Unix(5, 0)}
	is := func(result journal.Result) journal.Finished { return journal.Finished{Result: result} }
	for _, tt := range []struct {
		name  string
		other journal.Event // of another object
		ends  []journal.Event
		want  string // count and oldest
	}{
		{"never", nil, []journal.Event{is(journal.ResultDone)}, ""},
		{"one", nil, []journal.Event{at(7)}, "1 7"},
		{"because of a failure", nil, []journal.Event{failedAt}, "1 5"},
		{"two", at(9), []journal.Event{at(7)}, "2 7"},
		{"one of two is repaired", at(9), []journal.Event{at(7), is(journal.ResultDone)}, "1 9"},
		{"repaired", nil, []journal.Event{at(7), is(journal.ResultDone)}, "0"},
		{"in the hands of a person", nil, []journal.Event{at(7), is(journal.ResultPaused)}, "0"},
		{"deleted", nil, []journal.Event{at(7), is(journal.ResultGone)}, "0"},
		{"nothing was evaluated", nil, []journal.Event{at(7), is(journal.ResultStale), is(journal.ResultConverged), is(journal.ResultWaiting)}, "1 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			m := observer(t, registry, metrics.Options{})
			feed(m, "database", database, tt.ends...)
			if tt.other != nil {
				feed(m, "database", journal.Object{Kind: "Database", Name: "other"}, tt.other)
			}
			want := ""
			for i, value := range strings.Fields(tt.want) {
				name := []string{"ctrlkit_stalled_objects", "ctrlkit_stalled_oldest_timestamp_seconds"}[i]
				help := []string{"Objects that are Stalled: a person has to act.",
					"Since when the object is Stalled that has been for longest. Absent while none is."}[i]
				want += fmt.Sprintf("# HELP %s %s\n# TYPE %s gauge\n%s{controller=\"database\"} %s\n", name, help, name, name, value)
			}
			expect(t, registry, want, "ctrlkit_stalled_objects", "ctrlkit_stalled_oldest_timestamp_seconds")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	taken := prometheus.NewPedanticRegistry()
	taken.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "ctrlkit_hot_loops_total", Help: "Of another library."}))
	for name, registerer := range map[string]prometheus.Registerer{"nil": nil, "a name that is taken": taken} {
		if m, err := metrics.New(registerer, metrics.Options{}); err == nil || m != nil {
			t.Errorf("%s: got %v and error %v, want an error alone", name, m, err)
		}
	}
}

// What is kept of an object, after each of several reconciles.
func TestObjects(t *testing.T) {
	done := journal.Finished{Result: journal.ResultDone}
	fail := journal.Finished{Result: journal.ResultFailed, Outcome: failed}
	wait := journal.Finished{Result: journal.ResultWaiting, Outcome: waiting}
	stale := journal.Finished{Result: journal.ResultStale}
	stalled := journal.Finished{Result: journal.ResultStalled}
	slowed := journal.Finished{Result: journal.ResultWaiting}
	gone := journal.Finished{Result: journal.ResultGone}
	for _, tt := range []struct {
		name     string
		finished []journal.Event
		want     []string // result and failures; empty for no series
	}{
		{"never reconciled", nil, nil},
		{"failures in a row", []journal.Event{fail, fail, fail}, []string{"failed", "3"}},
		{"done ends the row", []journal.Event{fail, done}, []string{"done", "0"}},
		{"a wait ends the row", []journal.Event{fail, wait}, []string{"waiting", "0"}},
		{"a wait is no failure", []journal.Event{wait, wait}, []string{"waiting", "0"}},
		{"a cache that is stale says nothing", []journal.Event{fail, stale}, []string{"stale", "1"}},
		{"nor does an object that is slowed down", []journal.Event{fail, slowed, fail}, []string{"failed", "2"}},
		{"stalled", []journal.Event{fail, stalled}, []string{"stalled", "0"}},
		{"gone", []journal.Event{fail, gone}, nil},
		{"gone before it was seen", []journal.Event{gone}, nil},
		{"a new one of the same name", []journal.Event{fail, gone, fail}, []string{"failed", "1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			feed(observer(t, registry, metrics.Options{PerObject: metrics.PerObjectEach}), "database", database, tt.finished...)
			want := ""
			if tt.want != nil {
				want = fmt.Sprintf(`
# HELP ctrlkit_object_failures Reconciles of the object that failed in a row.
# TYPE ctrlkit_object_failures gauge
ctrlkit_object_failures{controller="database",name="db",namespace="default"} %s
# HELP ctrlkit_object_result 1 for the result of the last reconcile of the object.
# TYPE ctrlkit_object_result gauge
ctrlkit_object_result{controller="database",name="db",namespace="default",result=%q} 1
`, tt.want[1], tt.want[0])
			}
			expect(t, registry, want, "ctrlkit_object_failures", "ctrlkit_object_result")
		})
	}
}

func TestObjectsAreNotKeptUnasked(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	feed(observer(t, registry, metrics.Options{}), "database", database, journal.Finished{Result: journal.ResultDone})
	if n, err := testutil.GatherAndCount(registry, "ctrlkit_object_result", "ctrlkit_object_failures"); n != 0 || err != nil {
		t.Errorf("got %d series of objects, error %v", n, err)
	}
}

// Names that an operator makes at run time are bounded, also over several observers.
func TestNamesAreBounded(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, second := observer(t, registry, metrics.Options{}), observer(t, registry, metrics.Options{})
	const made = 500
	for i := range made {
		m, second = second, m
		feed(m, "steps", database,
			journal.StepEnded{Step: fmt.Sprint("step ", i)},
			journal.ActionEnded{Step: fmt.Sprint("step ", i), Action: fmt.Sprint("action ", i%2)})
		feed(m, "actions", database,
			journal.ActionEnded{Step: "Run", Action: fmt.Sprint("action ", i)},
			journal.Wrote{Verb: "apply", Object: journal.Object{Kind: fmt.Sprint("Kind", i)}},
			journal.Finished{Outcome: journal.Outcome{Err: errRefused, Class: fmt.Sprint("class ", i)}})
		feed(m, "actions", database, journal.ActionEnded{Step: "Run", Action: "action 7"})
	}
	feed(m, "another", database, journal.ActionEnded{Step: "Run", Action: "action 499"})

	for name, want := range map[string]int{
		"ctrlkit_steps_total":             201,
		"ctrlkit_step_duration_seconds":   201,
		"ctrlkit_actions_total":           201 + 201 + 1,
		"ctrlkit_action_duration_seconds": 201 + 201 + 1,
		"ctrlkit_writes_total":            201,
		"ctrlkit_failures_total":          201,
	} {
		if got, err := testutil.GatherAndCount(registry, name); got != want || err != nil {
			t.Errorf("%s: got %d series, want %d (error %v)", name, got, want, err)
		}
	}
	got := counts(t, registry, "ctrlkit_actions_total")
	want := map[string]float64{
		"actions Run other":      made - 200,
		"actions Run action 7":   made + 1,
		"actions Run action 0":   1,
		"steps other other":      made - 200,
		"another Run action 499": 1,
	}
	for name := range got {
		if _, looked := want[name]; !looked {
			delete(got, name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// counts returns the values of counters by their controller, step and action.
func counts(t *testing.T, registry prometheus.Gatherer, name string) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			all[labels["controller"]+" "+labels["step"]+" "+labels["action"]] = m.GetCounter().GetValue()
		}
	}
	return all
}

// A step may be called "other", and a name may be no text.
func TestOddNames(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	feed(observer(t, registry, metrics.Options{}), "database", database,
		journal.ActionEnded{Step: "other", Action: "Migrate"},
		journal.ActionEnded{Step: "Run", Action: "a\xffb"},
		journal.ActionEnded{Step: "R\xffn", Action: "Migrate"})
	want := map[string]float64{"database other Migrate": 1, "database Run a\uFFFDb": 1, "database R\uFFFDn Migrate": 1}
	if diff := cmp.Diff(want, counts(t, registry, "ctrlkit_actions_total")); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

func TestConcurrentUse(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := observer(t, registry, metrics.Options{PerObject: metrics.PerObjectEach})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 100 {
				object := journal.Object{Kind: "Database", Name: fmt.Sprint(i % 10)}
				feed(m, "database", object,
					journal.Started{Causes: []journal.Cause{{Kind: journal.CauseTimer, Times: 1}}},
					journal.ActionEnded{Step: "Run", Action: fmt.Sprint(g, i)},
					journal.Finished{Result: journal.ResultDone})
				if _, err := registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	expect(t, registry, `
# HELP ctrlkit_reconciles_total Reconciles, by result.
# TYPE ctrlkit_reconciles_total counter
ctrlkit_reconciles_total{controller="database",result="done"} 400
`, "ctrlkit_reconciles_total")
	if n, err := testutil.GatherAndCount(registry, "ctrlkit_actions_total", "ctrlkit_object_result"); n != 201+10 || err != nil {
		t.Errorf("got %d series of actions and objects, error %v, want %d", n, err, 201+10)
	}
}
