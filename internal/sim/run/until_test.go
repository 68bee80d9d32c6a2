// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func untilKinds() []Kind {
	return append(builtinKinds(), Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "demo.dev", Version: "v1", Kind: "CronJob"},
		Plural:           "cronjobs", Short: []string{"dcj"}, Operators: true,
	})
}

// untilWorld has two Jobs of an operator's CronJob, one of them done, and a ConfigMap that belongs
// to no owner.
func untilWorld(t *testing.T) *World {
	t.Helper()
	world := NewWorld(schema.GroupKind{Group: "demo.dev", Kind: "CronJob"})
	owned := `ownerReferences: [{uid: c, controller: true}]`
	for _, object := range []string{
		`{apiVersion: demo.dev/v1, kind: CronJob, metadata: {name: hello, namespace: default, uid: c},
		  status: {lastScheduleTime: "2026-01-01T00:00:00Z", active: [{name: hello-2}], runs: 12, empty: ""}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: hello-1, namespace: default, uid: j1, ` + owned + `},
		  status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: hello-2, namespace: other, uid: j2, ` + owned + `}, status: {active: 1}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: default, uid: m}, data: {mode: fast}}`,
		`{apiVersion: batch/v1, kind: CronJob, metadata: {name: builtin, namespace: default, uid: b}}`,
	} {
		world.Apply(Change{Object: newObject(parseObject(t, object), nil)})
	}
	return world
}

func TestConditionHolds(t *testing.T) {
	tests := []struct {
		text    string
		missing string // empty when it holds
	}{
		{"job", ""},
		{"Jobs/*=Complete", ""},
		{"job=complete", ""},
		{"job = Complete", ""},
		{"job==Complete", ""},
		{"job=SuccessCriteriaMet", ""},
		{"job/hello-2=Running", ""},
		{"job/other/hello-2", ""},
		{"job/o*/hello-?", ""},
		{"job/default/hello-2", "no such object"},
		{"job/hello-2=Complete", "0 of 1; Job other/hello-2 is Running"},
		{"job=Complete count >= 2", "1 of 2; Job other/hello-2 is Running"},
		{"job count==2", ""},
		{"job count>=3", "there are 2"},
		{"job count < 2", "there are 2"},
		{"pod count = 0", ""},
		{"pod", "no such object"},
		{"cronjob/hello:status.lastScheduleTime", ""},
		{"dcj:.status.lastScheduleTime", ""},
		{"cronjob/hello:{.status.lastScheduleTime}", ""},
		{"cronjob/hello:status.nothing", "0 of 1; CronJob default/hello is active 1, last schedule 2026-01-01T00:00:00Z, runs 12"},
		{"cronjob/hello:status.empty", "0 of 1; CronJob default/hello is active 1, last schedule 2026-01-01T00:00:00Z, runs 12"},
		{"cronjob/hello:status.runs >= 9", ""},
		{"cronjob/hello:status.runs=12", ""},
		{"cronjob/hello:status.runs=12.0", ""},
		{"cronjob/hello:status.runs != 12", "0 of 1; CronJob default/hello is active 1, last schedule 2026-01-01T00:00:00Z, runs 12"},
		{"cronjob/hello:status.active[0].name=hello-2", ""},
		{"cronjob/hello:status.active[*].name='hello-2'", ""},
		{`job:status.conditions[?(@.type=="Complete")].status=True`, ""},
		{`job:{.status.conditions[?(@.type=="Complete")].status} = "True" count = 1`, ""},
		{"configmap/settings:data.mode=fast", ""}, // exactly named: any object
		{"configmap/*", "no such object"},         // a pattern: only what belongs to the operator
		{"configmap", "no such object"},
		{"cronjob.batch/builtin", ""},
		{"cronjob/builtin", "no such object"}, // the operator's kind goes first
		{"deployment.apps count=0", ""},
	}
	world := untilWorld(t)
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			condition, err := ParseCondition(test.text, untilKinds())
			must(t, err)
			holds, missing := condition.Holds(world)
			if holds != (test.missing == "") || missing != test.missing {
				t.Errorf("holds: %v, missing %q, want %q", holds, missing, test.missing)
			}
		})
	}
}

// In the texts ^ stands before the wrong piece.
func TestParseConditionReportsThePlace(t *testing.T) {
	tests := []struct{ text, message string }{
		{"^", "expected a kind"},
		{"  ^/hello", "expected a kind"},
		{"^jbo/hello", `did you mean "Job"?`},
		{"^elephant", "--watch adds kinds"},
		{"^jsonpath={.status}", "name the objects first"},
		{"job/^", "expected a name"},
		{"job/^a//b", "expected a name"},
		{"job/^a/b/c", "too many parts"},
		{"job=^", "expected a condition or state"},
		{"job=Complete ^coun >= 3", "unexpected text after the condition"},
		{"job ^hello", "unexpected text after the condition"},
		{"job=Complete^:x", "unexpected text after the condition"},
		{"job count ^three", "expected a comparison"},
		{"job count >= ^three", "expected a number"},
		{"job count >= ^99999999999999999999", "expected a number"},
		{"job:^", "expected a field"},
		{"job:^ = 3", "expected a field"},
		{"job:^status.x[0", "unbalanced brackets"},
		{"job:^{.status", "unbalanced brackets"},
		{"job:^status.x[?(@.a=='b)]", "missing closing '"},
		{"job:^{.status[x]}", "invalid JSONPath"},
		{"job:status.x = ^", "expected a value"},
		{"job:status.x = ^'a", "missing closing quote"},
		{"job:status.x > ^many", "> compares numbers"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			before, after, _ := strings.Cut(test.text, "^")
			_, err := ParseCondition(before+after, untilKinds())
			var syntax *SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, want a syntax error", err)
			}
			if syntax.Offset != len(before) || !strings.Contains(syntax.Message, test.message) {
				t.Errorf("got %q at %d, want %q at %d", syntax.Message, syntax.Offset, test.message, len(before))
			}
		})
	}
}

func TestSyntaxErrorUnderlinesByLetters(t *testing.T) {
	err := &SyntaxError{Text: "job:x='é' zzz", Offset: len("job:x='é' "), Message: "no"}
	if got, want := err.Error(), "condition \"job:x='é' zzz\", column 11: no\n    job:x='é' zzz\n              ^"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func FuzzParseCondition(f *testing.F) {
	for _, seed := range []string{"job/*=Complete count >= 3", "cronjob/hello:status.lastScheduleTime", `job:{.a[?(@.b=="c")]}!='d'`, "po/a/b:x<3", "job:}{", "job:{}"} {
		f.Add(seed)
	}
	world := NewWorld(rootKind)
	f.Fuzz(func(t *testing.T, text string) {
		condition, err := ParseCondition(text, untilKinds())
		if err == nil {
			condition.Holds(world)
			return
		}
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) || syntax.Error() == "" {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func TestNearKind(t *testing.T) {
	for name, want := range map[string]string{"jbo": "Job", "deploymnet": "Deployment", "cronjbs": "CronJob", "elephant": ""} {
		if got := nearKind(name, untilKinds()); got != want {
			t.Errorf("nearKind(%q) = %q, want %q", name, got, want)
		}
	}
}
