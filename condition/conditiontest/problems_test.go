// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package conditiontest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition/conditiontest"
)

type condition = metav1.Condition

// Each wrong object breaks one rule, as a struct and as what a dynamic client reads.
func TestProblems(t *testing.T) {
	const isFalse, isUnknown = metav1.ConditionFalse, metav1.ConditionUnknown
	message := func(text string) *database {
		return newDatabase(ready(), with("SecretFound", isFalse, "NotFound", text))
	}
	form := func(change func(*condition)) *database { return newDatabase(ready(), having(found(), change)) }
	deleted := func(d *database) *database { d.DeletionTimestamp = &noon; return d }
	for _, tt := range []struct {
		name string
		obj  *database
		rule conditiontest.Rule
		want string
	}{
		{"no conditions", newDatabase(), conditiontest.RuleHasReady, `status.conditions has no "Ready"`},
		{"no Ready", newDatabase(found()), conditiontest.RuleHasReady, `set it from the first reconcile on`},
		{"a type twice", newDatabase(ready(), found(), found()), conditiontest.RuleUnique, `status.conditions[2] "SecretFound" is there a second time`},
		{"Ready and Reconciling", newDatabase(ready(), reconciling()), conditiontest.RuleReadyAlone, `status.conditions[0] "Ready" is True beside Reconciling`},
		{"Ready and Stalled", newDatabase(stalled(), ready()), conditiontest.RuleReadyAlone, `status.conditions[1] "Ready" is True beside Stalled`},
		{"all three", newDatabase(ready(), reconciling(), stalled()), conditiontest.RuleReadyAlone, "Reconciling and Stalled that are True"},
		{"both", newDatabase(unready(), reconciling(), stalled()), conditiontest.RuleOneOfTwo, "Reconciling and Stalled both True"},
		{"not Ready, and nothing else", newDatabase(unready()), conditiontest.RuleSaysWhy, `"Ready" is False, and nothing says what comes next`},
		{"not Ready, and Reconciling is False", newDatabase(unready(), with("Reconciling", isFalse, "Done", "")),
			conditiontest.RuleSaysWhy, "set Reconciling if the operator continues by itself"},
		{"Ready is Unknown", newDatabase(with("Ready", isUnknown, "New", "not evaluated")), conditiontest.RuleSaysWhy, "is Unknown"},
		{"no type", form(func(c *condition) { c.Type = "" }), conditiontest.RuleValid, `status.conditions[1] "": the API server rejects the type`},
		{"a type with a space", form(func(c *condition) { c.Type = "Secret found" }), conditiontest.RuleValid, `write it like "SecretFound"`},
		{"a prefix in upper case", form(func(c *condition) { c.Type = "Example/Found" }), conditiontest.RuleValid, "rejects the type"},
		{"a long type", form(func(c *condition) { c.Type = strings.Repeat("a", 317) }), conditiontest.RuleValid, "rejects the type"},
		{"no status", form(func(c *condition) { c.Status = "" }), conditiontest.RuleValid, `rejects the status ""`},
		{"a status in lower case", form(func(c *condition) { c.Status = "true" }), conditiontest.RuleValid, "it is True, False or Unknown"},
		{"no reason", form(func(c *condition) { c.Reason = "" }), conditiontest.RuleValid, `rejects the reason ""`},
		{"a reason with a hyphen", form(func(c *condition) { c.Reason = "not-found" }), conditiontest.RuleValid, `"not-found"`},
		{"a long reason", form(func(c *condition) { c.Reason = strings.Repeat("a", 1025) }), conditiontest.RuleValid, "rejects the reason"},
		{"no time", form(func(c *condition) { c.LastTransitionTime = metav1.Time{} }), conditiontest.RuleTimed, "lastTransitionTime is not set"},
		{"no generation", form(func(c *condition) { c.ObservedGeneration = 0 }), conditiontest.RuleObserved, "observedGeneration is not set: copy metadata.generation"},
		{"an old generation", form(func(c *condition) { c.ObservedGeneration = 2 }), conditiontest.RuleObserved, "observedGeneration is 2, and the generation of the object is 3"},
		{"a later generation", form(func(c *condition) { c.ObservedGeneration = 4 }), conditiontest.RuleObserved, "generation of the object is only 3"},
		{"an old generation of what is computed", newDatabase(unready(), having(stalled(), func(c *condition) { c.ObservedGeneration = 2 })),
			conditiontest.RuleObserved, `"Stalled": observedGeneration is 2`},
		{"an old generation at its deletion", deleted(newDatabase(having(unready(), func(c *condition) { c.ObservedGeneration = 2 }))),
			conditiontest.RuleObserved, `"Ready": observedGeneration is 2`},
		{"a later generation while Paused", newDatabase(unready(), having(paused(), func(c *condition) { c.ObservedGeneration = 4 })),
			conditiontest.RuleObserved, "generation of the object is only 3"},
		{"not Ready without a message", newDatabase(having(unready(), noMessage), stalled()), conditiontest.RuleHasMessage, `"Ready" is False without a message`},
		{"Reconciling without a message", newDatabase(unready(), having(reconciling(), noMessage)), conditiontest.RuleHasMessage, `"Reconciling" is True`},
		{"Stalled without a message", newDatabase(unready(), having(stalled(), noMessage)), conditiontest.RuleHasMessage, `"Stalled" is True`},
		{"Paused without a message", newDatabase(ready(), having(paused(), noMessage)), conditiontest.RuleHasMessage, `"Paused" is True`},
		{"Unknown without a message", newDatabase(ready(), with("SecretFound", isUnknown, "New", "")), conditiontest.RuleHasMessage, "say what is missing"},
		{"a timestamp", message("failed at 2026-07-01T12:00:00Z"), conditiontest.RuleHoldsStill, `the message has a timestamp, "2026-07-01T12:00:00Z"`},
		{"a timestamp with an offset", message("at 2026-07-01T12:00:00.123+02:00."), conditiontest.RuleHoldsStill, `"2026-07-01T12:00:00.123+02:00"`},
		{"a timestamp of time.Time", message("at 2026-07-01 12:00:00 +0000 UTC"), conditiontest.RuleHoldsStill, `"2026-07-01 12:00:00"`},
		{"a pointer", message("got &{0xc0001a2b40}"), conditiontest.RuleHoldsStill, `the message has an address in memory, "0xc0001a2b40"`},
		{"a UUID", message("request id: 1b4e28ba-2fa1-11d2-883f-0016d3cca427"), conditiontest.RuleHoldsStill, `a UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca427"`},
		{"a map", message("labels are map[app:db tier:1]"), conditiontest.RuleHoldsStill, `a map as Go prints it, "map[app:db tier:1]"`},
		{"an empty map", message("labels are map[]"), conditiontest.RuleHoldsStill, `"map[]"`},
		{"a long message", message(strings.Repeat("x", 32769)), conditiontest.RuleShortEnough, "the message has 32769 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := conditiontest.Problems(tt.obj)
			if len(got) != 1 || got[0].Rule != tt.rule || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %q, want %q with %q", got, tt.rule, tt.want)
			}
			if diff := cmp.Diff(got, conditiontest.Problems(toUnstructured(t, tt.obj))); diff != "" {
				t.Errorf("as a struct, and as what a dynamic client reads (-struct +dynamic):\n%s", diff)
			}
		})
	}
}

func noMessage(c *condition) { c.Message = "" }

func TestRightObjectsHaveNoProblems(t *testing.T) {
	old := func(c metav1.Condition) metav1.Condition {
		return having(c, func(c *condition) { c.ObservedGeneration = 2 })
	}
	message := func(text string) *database {
		return newDatabase(ready(), with("SecretFound", metav1.ConditionFalse, "NotFound", text))
	}
	deleted := func(d *database) *database { d.DeletionTimestamp = &noon; return d }
	without := newDatabase(having(ready(), func(c *condition) { c.ObservedGeneration = 0 }))
	without.Generation = 0
	for _, tt := range []struct {
		name string
		obj  *database
	}{
		{"Ready", newDatabase(ready(), found())},
		{"Ready beside what is False", newDatabase(ready(), with("Reconciling", "False", "Done", ""), with("Stalled", "False", "Done", ""))},
		{"Reconciling", newDatabase(unready(), reconciling(), with("SecretFound", "False", "NotFound", "it is not there"))},
		{"Stalled", newDatabase(unready(), stalled())},
		{"Stalled before it reached all", newDatabase(unready(), stalled(), old(found()))},
		{"Ready and Unknown, with a word about it", newDatabase(with("Ready", "Unknown", "New", "not evaluated"), reconciling())},
		{"Paused", newDatabase(old(unready()), paused(), old(found()))},
		{"Paused while Ready", newDatabase(old(ready()), paused())},
		{"being deleted", deleted(newDatabase(unready()))},
		{"an object whose generation is not counted", without},
		{"a type with a prefix", newDatabase(ready(), with("example.com/Found", "True", "Found", ""))},
		{"the longest type and reason", newDatabase(ready(), with(strings.Repeat("a", 316), "True", strings.Repeat("a", 1024), ""))},
		{"numbers", message("2 of 3 replicas are there, port 5432, 0x10, 2026-07-01")},
		{"a name with a UUID", message(`waits for PersistentVolume "pvc-1b4e28ba-2fa1-11d2-883f-0016d3cca427"`)},
		{"a type of Go", message("cannot unmarshal string into map[string]int")},
		{"the longest message", message(strings.Repeat("x", 32768))},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := conditiontest.Problems(tt.obj); len(got) > 0 {
				t.Errorf("got %q", got)
			}
			if got := conditiontest.Problems(toUnstructured(t, tt.obj)); len(got) > 0 {
				t.Errorf("as what a dynamic client reads: got %q", got)
			}
		})
	}
}

// A value that is not a list of conditions causes a problem, not a panic.
func TestProblemsOfWhatCanNotBeRead(t *testing.T) {
	read := func(conditions any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	right := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-07-01T12:00:00Z"}
	for _, tt := range []struct {
		name string
		obj  client.Object
		want string
	}{
		{"a type without conditions", &corev1.Secret{}, "*v1.Secret: no conditions: it needs a field Status.Conditions"},
		{"conditions of another type", &corev1.Pod{}, "*v1.Pod: no conditions"},
		{"a status that is a text", &unstructured.Unstructured{Object: map[string]any{"status": "good"}}, "status.conditions is not a list"},
		{"an object for a list", read(map[string]any{"Ready": true}), "status.conditions is not a list"},
		{"a text for a condition", read([]any{right, "Ready"}), "status.conditions[1] is string"},
		{"a time that is none", read([]any{right, map[string]any{"type": "A", "lastTransitionTime": "noon"}}), "status.conditions[1]: "},
		{"a number for a status", read([]any{map[string]any{"type": "A", "status": int64(1)}, right}), "status.conditions[0]: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := conditiontest.Problems(tt.obj)
			if len(got) != 1 || got[0].Rule != conditiontest.RuleReadable || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %q, want %q with %q", got, conditiontest.RuleReadable, tt.want)
			}
			if got := conditiontest.ChangeProblems(tt.obj, tt.obj); len(got) == 0 || got[0].Rule != conditiontest.RuleReadable {
				t.Errorf("between versions: got %q, want %q", got, conditiontest.RuleReadable)
			}
		})
	}
}

// All problems are reported, each once, those of the whole first and then those of each condition.
func TestProblemsReportsEverything(t *testing.T) {
	bad := metav1.Condition{Type: "A b", Message: "0xc000000001 at 2026-07-01T12:00:00Z and 2026-07-01T13:00:00Z"}
	want := []conditiontest.Rule{
		conditiontest.RuleSaysWhy,
		conditiontest.RuleValid, conditiontest.RuleValid, conditiontest.RuleValid, conditiontest.RuleTimed, conditiontest.RuleObserved,
		conditiontest.RuleHoldsStill, conditiontest.RuleHoldsStill,
		conditiontest.RuleHasMessage,
	}
	var got []conditiontest.Rule
	for _, p := range conditiontest.Problems(newDatabase(bad, having(unready(), noMessage))) {
		got = append(got, p.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
