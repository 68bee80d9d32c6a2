// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// zone returns a cluster-scoped object with a condition Ready of generation 2, and fields besides.
func zone(ready string, metadata map[string]any) *unstructured.Unstructured {
	metadata["name"], metadata["generation"] = "eu", int64(2)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Zone", "metadata": metadata, "status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": "Because", "observedGeneration": int64(2), "lastTransitionTime": at(0).Format(time.RFC3339),
		}}},
	}}
}

func TestWrite(t *testing.T) {
	failing := explanation.Step{Name: "Zone", State: explanation.StateFailed, Error: "line one\n\tline two", Class: "TemporaryError", Remedy: "wait", Since: at(0)}
	waiting := explanation.Step{Name: "Peer", State: explanation.StateWaiting, Since: at(0), Waits: []journal.Wait{{For: "a"}, {For: "b", Every: 5 * time.Second}}}
	for _, test := range []struct {
		name string
		x    explanation.Explanation
		want []string
		not  string
	}{
		{
			"an error of several lines is one", explanation.Explanation{Object: zone("False", map[string]any{}), Report: reportOf(explanation.Controller{Steps: []explanation.Step{failing}})},
			[]string{"\n  - Zone fails (TemporaryError): wait.\n      line one line two\n", "✗ Zone   fails, for 60s: line one line two\n"}, "",
		},
		{
			"two waits are two things to do", explanation.Explanation{Object: zone("False", map[string]any{}), Report: reportOf(explanation.Controller{Steps: []explanation.Step{waiting}})},
			[]string{"Peer waits for a. Check what delays it; the operator continues by itself.\n", "Peer waits for b.", "by itself within 5s.", "waits, for 60s: a; b\n"}, "",
		},
		{
			"two controllers", explanation.Explanation{Object: zone("True", map[string]any{}), Report: reportOf(explanation.Controller{Name: "a"}, explanation.Controller{Name: "b"})},
			[]string{"Steps of controller a\n  none has run lately\n", "Steps of controller b\n"}, "What to do",
		},
		{
			"the command names the place of the finalizer",
			explanation.Explanation{
				Object: zone("False", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339), "finalizers": []any{"ours.io/a", "x.io/b", "x.io/c", "foregroundDeletion"}}),
				Report: reportOf(explanation.Controller{Finalizer: "ours.io/a"}), Resource: "zones.example.com",
			},
			[]string{
				`kubectl patch zones.example.com eu --type=json -p '[{"op":"test","path":"/metadata/finalizers/1","value":"x.io/b"},{"op":"remove","path":"/metadata/finalizers/1"}]'` + "\n",
				`"path":"/metadata/finalizers/2","value":"x.io/c"`,
				"Finalizer foregroundDeletion belongs to Kubernetes' garbage collector, which waits until the objects that this one owns are deleted",
			}, `"value":"ours.io/a"`,
		},
		{
			"the command does not propose to remove a finalizer if the operator was not asked",
			explanation.Explanation{Object: zone("False", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339), "finalizers": []any{"ours.io/a"}}), NoReport: "no"},
			[]string{"It is kept by finalizer ours.io/a.", "\nSteps and causes are not known: no\n"}, "kubectl patch",
		},
		{
			"a pause with a value that can't be read",
			explanation.Explanation{Object: zone("True", map[string]any{"annotations": map[string]any{"ctrlkit.dev/paused": "yes"}}), Resource: "zones.example.com"},
			[]string{"kubectl annotate zones.example.com eu ctrlkit.dev/paused-\n"}, "",
		},
		{
			"a pause that is switched off", explanation.Explanation{Object: zone("True", map[string]any{"annotations": map[string]any{"ctrlkit.dev/paused": "False"}})},
			[]string{"Zone eu has been ready for 60s\n"}, "What to do",
		},
		{
			"a pending cleanup of an object that does not exist any more",
			explanation.Explanation{Report: reportOf(explanation.Controller{Result: journal.ResultFailed, Steps: []explanation.Step{failing}})},
			[]string{"Zone eu does not exist\n", "  - Zone fails (TemporaryError): wait.\n"}, "",
		},
		{
			"what an operator is done with is over",
			explanation.Explanation{Report: reportOf(explanation.Controller{Name: "a", Result: journal.ResultGone, Steps: []explanation.Step{failing}})},
			[]string{"Zone eu does not exist any more, and controller a has nothing left to do for it\n"}, "What to do",
		},
		{
			"reconciles that wrote something else are not merged",
			explanation.Explanation{Report: reportOf(explanation.Controller{Runs: []explanation.Run{
				{Began: at(0), Result: journal.ResultDone},
				{Began: at(0).Add(10 * time.Second), Result: journal.ResultDone},
				{Began: at(0).Add(20 * time.Second), Result: journal.ResultDone, Writes: []explanation.Write{{What: "create it", Error: "exists"}}},
			}})},
			[]string{"40s ago   done", "refused: create it: exists\n", "50s ago   done   (and 1 like it before, since 60s ago)\n"}, "",
		},
		{
			"a kind that has no conditions", explanation.Explanation{Object: plain("v1", "Secret"), NoReport: "no"},
			[]string{"Secret shop/db-password exists\n  A Secret has no conditions: explain the object whose operator reads or writes it\n\nSteps"}, "What to do",
		},
		{
			"the owner of an object that has no conditions", explanation.Explanation{Object: plain("v1", "ConfigMap", owner("apps/v1", "Deployment", "web", false), owner("example.com/v1", "Database", "db", true))},
			[]string{"  A ConfigMap has no conditions: explain its owner, ctrlkit explain database.example.com/db -n shop\n"}, "What to do",
		},
		{
			"the owner of an object of a set that can have no owner reference", explanation.Explanation{Object: tracked("Database.example.com shop/db")},
			[]string{"  A PriorityClass has no conditions: explain its owner, ctrlkit explain database.example.com/db -n shop\n"}, "What to do",
		},
		{
			"the cluster-scoped owner of an object of a set", explanation.Explanation{Object: tracked("Database.example.com db")},
			[]string{"explain its owner, ctrlkit explain database.example.com/db\n"}, "What to do",
		},
		{
			"a kind of Kubernetes that has an owner", explanation.Explanation{Object: plain("apps/v1", "Deployment", owner("example.com/v1", "Database", "db", true)), Resource: "deployments.apps"},
			[]string{"  - Its owner may say more:\n      ctrlkit explain database.example.com/db -n shop\n"}, "operator runs",
		},
		{
			"an object without conditions whose operator waits", explanation.Explanation{Object: plain("v1", "ConfigMap"), Report: reportOf(explanation.Controller{Steps: []explanation.Step{waiting}})},
			[]string{"  - Peer waits for a."}, "",
		},
		{
			"a kind of Kubernetes that has conditions", explanation.Explanation{Object: plain("apps/v1", "Deployment"), Resource: "deployments.apps"},
			[]string{"has no condition Ready\n", "  - Kubernetes itself manages it.", "\n      kubectl describe deployments.apps db-password -n shop\n"}, "operator runs",
		},
		{
			"a kind of an operator that has not reconciled it", explanation.Explanation{Object: plain("example.com/v1", "Secret")},
			[]string{"Secret shop/db-password has no condition Ready\n", "  - Check that its operator runs"}, "exists",
		},
		{
			"an object that can't be read, with what its operator knows",
			explanation.Explanation{NoObject: "connection refused", Report: reportOf(explanation.Controller{Name: "a", Steps: []explanation.Step{waiting}})},
			[]string{"Zone eu can't be read: connection refused\n", "  - Peer waits for a.", "Steps of controller a\n"}, "does not exist",
		},
		{
			"an object that can't be read, and that its operator knows is gone",
			explanation.Explanation{NoObject: "its definition was removed", Report: reportOf(explanation.Controller{Name: "a", Result: journal.ResultGone})},
			[]string{"Zone eu can't be read: its definition was removed\n"}, "does not exist",
		},
		{"nothing at all", explanation.Explanation{}, []string{"The object does not exist\n"}, "What to do"},
		{
			"neither the operator nor the conditions say anything", explanation.Explanation{Object: zone("False", map[string]any{}), Report: reportOf(explanation.Controller{Name: "a"})},
			[]string{"Check the operator's log: controller a neither fails nor waits"}, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.x.Now = at(1)
			text := textOf(t, &test.x)
			for _, want := range test.want {
				if !strings.Contains(text, want) {
					t.Errorf("want %q", want)
				}
			}
			if test.not != "" && strings.Contains(text, test.not) {
				t.Errorf("it says %q", test.not)
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}

// plain returns the object shop/db-password without a status.
func plain(apiVersion, kind string, owners ...any) *unstructured.Unstructured {
	metadata := map[string]any{"name": "db-password", "namespace": "shop"}
	if len(owners) > 0 {
		metadata["ownerReferences"] = owners
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

func owner(apiVersion, kind, name string, controller bool) map[string]any {
	return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "uid": "1", "controller": controller}
}

func reportOf(controllers ...explanation.Controller) *explanation.Report {
	return &explanation.Report{Object: journal.Object{Kind: "Zone", Name: "eu"}, Controllers: controllers}
}

func TestReady(t *testing.T) {
	old := zone("True", map[string]any{})
	old.SetGeneration(3)
	for _, test := range []struct {
		name string
		obj  *unstructured.Unstructured
		want bool
	}{
		{"ready", zone("True", map[string]any{}), true},
		{"not ready", zone("False", map[string]any{}), false},
		{"not known", zone("Unknown", map[string]any{}), false},
		{"of an older spec", old, false},
		{"being deleted", zone("True", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339)}), false},
		{"no conditions", &unstructured.Unstructured{Object: map[string]any{"status": "fine"}}, false},
		{"no object", nil, false},
		{"of a kind that has no conditions", plain("v1", "Secret"), true},
		{"of a kind of Kubernetes without its conditions", plain("v1", "Pod"), false},
		{"of a kind of an operator", plain("example.com/v1", "Secret"), false},
	} {
		if got := (&explanation.Explanation{Object: test.obj}).Ready(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A Secret that its operator waits or fails for is not ready, though it has no condition that says
// so.
func TestReadyWithoutConditions(t *testing.T) {
	for _, test := range []struct {
		name string
		c    explanation.Controller
		want bool
	}{
		{"fine", explanation.Controller{Steps: []explanation.Step{{Name: "A", State: explanation.StateDone}}}, true},
		{"waiting", explanation.Controller{Steps: []explanation.Step{{Name: "A", State: explanation.StateWaiting}}}, false},
		{"failing outside the steps", explanation.Controller{Failure: "conflict"}, false},
		{"left alone", explanation.Controller{Gated: "paused"}, false},
	} {
		x := &explanation.Explanation{Object: plain("v1", "Secret"), Report: reportOf(test.c)}
		if got := x.Ready(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
