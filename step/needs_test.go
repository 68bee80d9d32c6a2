// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/step"
)

// user returns a step that says what it does with Nodes, and watches ConfigMaps.
func user(s step.Step[*Thing]) step.Step[*Thing] {
	s.Uses = []permission.Use{{Object: &corev1.Node{}, Subresource: "status", Verbs: []string{"patch"}, By: "marks Nodes"}}
	s.Watches = func() []step.Watch { return []step.Watch{{Object: &corev1.ConfigMap{}, Owned: true}} }
	return s
}

// needing makes an engine that is asked what it needs.
func needing(t *testing.T, options step.Options[*Thing], steps ...step.Step[*Thing]) *step.Engine[*Thing] {
	t.Helper()
	options.Name, options.Client = "things", newWorld(t).server
	e, err := step.New(options, steps...)
	must(t, err)
	return e
}

func TestNeeds(t *testing.T) {
	const reads = "get things.test.example.com, list things.test.example.com, watch things.test.example.com"
	using := user(doing("Use", passes))
	for name, test := range map[string]struct {
		options step.Options[*Thing]
		steps   []step.Step[*Thing]
		want    string
	}{
		"nothing but a step": {steps: []step.Step[*Thing]{doing("A", passes)}, want: reads + ", patch things.test.example.com/status"},
		"a cleanup": {
			steps: []step.Step[*Thing]{cleaning("A", passes, passes)}, want: reads + ", patch things.test.example.com, patch things.test.example.com/status",
		},
		"a retired finalizer": {
			options: step.Options[*Thing]{RetiredFinalizers: []string{"example.com/old"}}, steps: []step.Step[*Thing]{doing("A", passes)},
			want: reads + ", patch things.test.example.com, patch things.test.example.com/status",
		},
		"a part of what reconciles": {options: step.Options[*Thing]{Partial: true}, steps: []step.Step[*Thing]{doing("A", passes)}, want: reads},
		"a part with a condition": {
			options: step.Options[*Thing]{Partial: true}, steps: []step.Step[*Thing]{keeping("A", passes, "Marked")}, want: reads + ", patch things.test.example.com/status",
		},
		"a recorder": {
			options: step.Options[*Thing]{Recorder: events.NewFakeRecorder(1), Partial: true}, steps: []step.Step[*Thing]{doing("A", passes)},
			want: "create events.events.k8s.io, patch events.events.k8s.io, " + reads,
		},
		"declared uses": {
			options: step.Options[*Thing]{Partial: true, Uses: []permission.Use{{Object: &corev1.ConfigMap{}, Verbs: []string{"create"}}}},
			steps:   []step.Step[*Thing]{step.When("always", always, using)},
			want:    "get configmaps, list configmaps, watch configmaps, create configmaps, patch nodes/status, " + reads,
		},
	} {
		t.Run(name, func(t *testing.T) {
			needs, err := needing(t, test.options, test.steps...).Needs()
			must(t, err)
			var got []string
			for _, n := range needs {
				got = append(got, n.String())
				if len(n.By) == 0 {
					t.Errorf("%s is needed, and not said by what", n)
				}
			}
			same(t, "needs", test.want, strings.Join(got, ", "))
		})
	}
}

// Each need says who has it.
func TestNeedsSayBy(t *testing.T) {
	needs, err := needing(t, step.Options[*Thing]{}, user(cleaning("Use", passes, passes))).Needs()
	must(t, err)
	for _, n := range needs {
		want := map[string]string{
			"patch nodes/status": `step "Use": marks Nodes`, "list configmaps": `step "Use": watches them`,
			"patch things.test.example.com/status": "engine things: saves the status", "get things.test.example.com": "engine things: reads what it reconciles",
		}[n.String()]
		if want != "" && (len(n.By) != 1 || n.By[0] != want) {
			t.Errorf("%s is needed by %q, want %q", n, n.By, want)
		}
	}
}

// A declaration that can't be understood is named, with the step.
func TestNeedsNameMistakes(t *testing.T) {
	for name, test := range map[string]struct {
		use  permission.Use
		want string
	}{
		"no verbs":            {permission.Use{Object: &corev1.Node{}}, `engine "things": a use of Node has no verbs`},
		"a kind of no server": {permission.Use{Object: &corev1.Pod{}, Verbs: []string{"get"}}, `resource of Pod`},
	} {
		t.Run(name, func(t *testing.T) {
			engine := needing(t, step.Options[*Thing]{Uses: []permission.Use{test.use}}, doing("A", passes))
			if _, err := engine.Needs(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want one with %q", err, test.want)
			}
		})
	}
}

// Once the controller is made, a step is not asked again what it watches: it may prepare for the
// controller then.
func TestNeedsAskNoStepAgain(t *testing.T) {
	asked := 0
	engine := needing(t, step.Options[*Thing]{}, step.Step[*Thing]{Name: "A", Watches: func() []step.Watch {
		asked++
		return []step.Watch{step.WatchOwned(&corev1.ConfigMap{})}
	}})
	if _, err := engine.Wire(); err != nil {
		t.Fatal(err)
	}
	needs, err := engine.Needs()
	must(t, err)
	same(t, "asked", 1, asked)
	same(t, "first need", "get configmaps", needs[0].String())
}
