// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/failure"
)

// A query is an expression of the dashboard or of an alert, with its place for messages.
type query struct{ place, text string }

// The dashboard and the alerts use only what an operator has.
func TestExpressions(t *testing.T) {
	t.Parallel()
	known := seriesOf(t)
	queries := slices.Concat(dashboard(t), alerts(t))
	for _, q := range queries {
		for _, problem := range check(known, q.text) {
			t.Errorf("%s: %s\n%s", q.place, problem, q.text)
		}
	}
	if len(queries) < 20 {
		t.Errorf("only %d expressions were found", len(queries))
	}
}

// Every series of ctrlkit is in the dashboard, except those that exist on request.
func TestTheDashboardHasEverySeries(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{}
	for _, q := range dashboard(t) {
		for _, s := range selectors(t, q.text) {
			shown[base(s.Name)] = true
		}
	}
	for name := range seriesOf(t) {
		if strings.HasPrefix(name, "ctrlkit_") && !shown[name] {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// The check finds what is wrong.
func TestCheck(t *testing.T) {
	t.Parallel()
	known := map[string][]string{"ctrlkit_failures_total": {"controller", "class"}, "queue_seconds": {"controller"}}
	for text, want := range map[string]string{
		`sum by (controller) (rate(ctrlkit_failures_total{class="Panic",job="x"}[5m]))`: "",
		`histogram_quantile(0.9, sum by (le) (rate(queue_seconds_bucket[5m])))`:         "",
		`rate(ctrlkit_failures_total[5m]`:                                               "unclosed left parenthesis",
		`ctrlkit_failure_total`:                                                         "no operator has the series ctrlkit_failure_total",
		`ctrlkit_failures_total{kind="x"}`:                                              "has no label kind",
		`ctrlkit_failures_total{class="Broken"}`:                                        "no class Broken",
		`ctrlkit_failures_total{class=~"Panic|Broken"}`:                                 "no class Broken",
		`sum by (step) (ctrlkit_failures_total)`:                                        "grouped by step",
	} {
		got := strings.Join(check(known, text), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// scraped are the labels that Prometheus adds to each series.
var scraped = []string{"job", "namespace", "instance", "le"}

var classes = []failure.Class{
	failure.ClassCanceled, failure.ClassConflict, failure.ClassThrottled, failure.ClassTransient, failure.ClassNotFound,
	failure.ClassForbidden, failure.ClassInvalid, failure.ClassTerminal, failure.ClassPanic,
}

// check returns what is wrong with an expression, for an operator that has the known series with
// their labels.
func check(known map[string][]string, text string) []string {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	has := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		s, ok := node.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		own, exists := known[base(s.Name)]
		if !exists {
			problems = append(problems, "no operator has the series "+s.Name)
			return nil
		}
		for _, name := range slices.Concat(own, scraped) {
			has[name] = true
		}
		for _, m := range s.LabelMatchers {
			if m.Name != model.MetricNameLabel {
				problems = append(problems, checkMatcher(s.Name, m, slices.Concat(own, scraped))...)
			}
		}
		return nil
	})
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if sum, ok := node.(*parser.AggregateExpr); ok && len(problems) == 0 {
			for _, name := range sum.Grouping {
				if !has[name] {
					problems = append(problems, "grouped by "+name+", which no series has")
				}
			}
		}
		return nil
	})
	return problems
}

func checkMatcher(series string, m *labels.Matcher, known []string) []string {
	if !slices.Contains(known, m.Name) {
		return []string{fmt.Sprintf("%s has no label %s", series, m.Name)}
	}
	if m.Name != "class" {
		return nil
	}
	var problems []string
	for value := range strings.SplitSeq(m.Value, "|") {
		if !slices.Contains(classes, failure.Class(value)) {
			problems = append(problems, "there is no class "+value)
		}
	}
	return problems
}

// base returns the name of the histogram that has a series, or the name itself.
func base(series string) string {
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if name, ok := strings.CutSuffix(series, suffix); ok {
			return name
		}
	}
	return series
}

func selectors(t *testing.T, text string) []*parser.VectorSelector {
	expr, err := parser.ParseExpr(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var list []*parser.VectorSelector
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, ok := node.(*parser.VectorSelector); ok {
			list = append(list, s)
		}
		return nil
	})
	return list
}

// dashboard returns the expressions of the dashboard, with values for the variables of Grafana.
func dashboard(t *testing.T) []query {
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$namespace", ".*", "$controller", ".*")
	var list []query
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			list = append(list, query{"panel " + p.Title, variables.Replace(target.Expr)})
		}
	}
	return list
}

// alerts returns the expressions of the alerts.
func alerts(t *testing.T) []query {
	guide := string(read(t, "../../docs/operate.md"))
	var list []query
	for _, r := range alertRules(t) {
		if !strings.Contains(guide, "`"+r.Alert+"`") {
			t.Errorf("docs/operate.md does not explain %s", r.Alert)
		}
		if keys := slices.Sorted(maps.Keys(r.Annotations)); !slices.Equal(keys, []string{"description", "summary"}) {
			t.Errorf("%s has the annotations %v", r.Alert, keys)
		}
		list = append(list, query{"alert " + r.Alert, r.Expr})
	}
	return list
}

// alertRules returns the alerts.
func alertRules(t *testing.T) []rulefmt.Rule {
	var object struct{ Spec json.RawMessage }
	if err := yaml.Unmarshal(read(t, "alerts.yaml"), &object); err != nil {
		t.Fatal(err)
	}
	parsed, errs := rulefmt.Parse(object.Spec, false, model.UTF8Validation)
	if len(errs) > 0 {
		t.Fatal(errs) // of the templates, too
	}
	var all []rulefmt.Rule
	for _, g := range parsed.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func read(t *testing.T, name string) []byte {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
