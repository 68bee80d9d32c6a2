// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/ctrlkittest"
)

type metaCondition = metav1.Condition

// Each wrong object breaks one rule, as a struct and as what a dynamic client reads.
func TestProblems(t *testing.T) {
	const isFalse, isUnknown = metav1.ConditionFalse, metav1.ConditionUnknown
	message := func(text string) *database {
		return newDatabase(ready(), with("SecretFound", isFalse, "NotFound", text))
	}
	form := func(change func(*metaCondition)) *database { return newDatabase(ready(), having(found(), change)) }
	deleted := func(d *database) *database { d.DeletionTimestamp = &noon; return d }
	for _, tt := range []struct {
		name string
		obj  *database
		rule ctrlkittest.ConditionRule
		want string
	}{
		{"no conditions", newDatabase(), ctrlkittest.ConditionRuleHasReady, `status.conditions has no "Ready"`},
		{"no Ready", newDatabase(found()), ctrlkittest.ConditionRuleHasReady, `set it from the first reconcile on`},
		{"a type twice", newDatabase(ready(), found(), found()), ctrlkittest.ConditionRuleUnique, `status.conditions[2] "SecretFound" is there a second time`},
		{"Ready and Reconciling", newDatabase(ready(), reconciling()), ctrlkittest.ConditionRuleReadyAlone, `status.conditions[0] "Ready" is True beside Reconciling`},
		{"Ready and Stalled", newDatabase(stalled(), ready()), ctrlkittest.ConditionRuleReadyAlone, `status.conditions[1] "Ready" is True beside Stalled`},
		{"all three", newDatabase(ready(), reconciling(), stalled()), ctrlkittest.ConditionRuleReadyAlone, "Reconciling and Stalled that are True"},
		{"both", newDatabase(unready(), reconciling(), stalled()), ctrlkittest.ConditionRuleOneOfTwo, "Reconciling and Stalled both True"},
		{"not Ready, and nothing else", newDatabase(unready()), ctrlkittest.ConditionRuleSaysWhy, `"Ready" is False, and nothing says what comes next`},
		{"not Ready, and Reconciling is False", newDatabase(unready(), with("Reconciling", isFalse, "Done", "")),
			ctrlkittest.ConditionRuleSaysWhy, "set Reconciling if the operator continues by itself"},
		{"Ready is Unknown", newDatabase(with("Ready", isUnknown, "New", "not evaluated")), ctrlkittest.ConditionRuleSaysWhy, "is Unknown"},
		{"no type", form(func(c *metaCondition) { c.Type = "" }), ctrlkittest.ConditionRuleValid, `status.conditions[1] "": the API server rejects the type`},
		{"a type with a space", form(func(c *metaCondition) { c.Type = "Secret found" }), ctrlkittest.ConditionRuleValid, `write it like "SecretFound"`},
		{"a prefix in upper case", form(func(c *metaCondition) { c.Type = "Example/Found" }), ctrlkittest.ConditionRuleValid, "rejects the type"},
		{"a long type", form(func(c *metaCondition) { c.Type = strings.Repeat("a", 317) }), ctrlkittest.ConditionRuleValid, "rejects the type"},
		{"no status", form(func(c *metaCondition) { c.Status = "" }), ctrlkittest.ConditionRuleValid, `rejects the status ""`},
		{"a status in lower case", form(func(c *metaCondition) { c.Status = "true" }), ctrlkittest.ConditionRuleValid, "it is True, False or Unknown"},
		{"no reason", form(func(c *metaCondition) { c.Reason = "" }), ctrlkittest.ConditionRuleValid, `rejects the reason ""`},
		{"a reason with a hyphen", form(func(c *metaCondition) { c.Reason = "not-found" }), ctrlkittest.ConditionRuleValid, `"not-found"`},
		{"a long reason", form(func(c *metaCondition) { c.Reason = strings.Repeat("a", 1025) }), ctrlkittest.ConditionRuleValid, "rejects the reason"},
		{"no time", form(func(c *metaCondition) { c.LastTransitionTime = metav1.Time{} }), ctrlkittest.ConditionRuleTimed, "lastTransitionTime is not set"},
		{"no generation", form(func(c *metaCondition) { c.ObservedGeneration = 0 }), ctrlkittest.ConditionRuleObserved, "observedGeneration is not set: copy metadata.generation"},
		{"an old generation", form(func(c *metaCondition) { c.ObservedGeneration = 2 }), ctrlkittest.ConditionRuleObserved, "observedGeneration is 2, and the generation of the object is 3"},
		{"a later generation", form(func(c *metaCondition) { c.ObservedGeneration = 4 }), ctrlkittest.ConditionRuleObserved, "generation of the object is only 3"},
		{"an old generation of what is computed", newDatabase(unready(), having(stalled(), func(c *metaCondition) { c.ObservedGeneration = 2 })),
			ctrlkittest.ConditionRuleObserved, `"Stalled": observedGeneration is 2`},
		{"an old generation at its deletion", deleted(newDatabase(having(unready(), func(c *metaCondition) { c.ObservedGeneration = 2 }))),
			ctrlkittest.ConditionRuleObserved, `"Ready": observedGeneration is 2`},
		{"a later generation while Paused", newDatabase(unready(), having(paused(), func(c *metaCondition) { c.ObservedGeneration = 4 })),
			ctrlkittest.ConditionRuleObserved, "generation of the object is only 3"},
		{"not Ready without a message", newDatabase(having(unready(), noMessage), stalled()), ctrlkittest.ConditionRuleHasMessage, `"Ready" is False without a message`},
		{"Reconciling without a message", newDatabase(unready(), having(reconciling(), noMessage)), ctrlkittest.ConditionRuleHasMessage, `"Reconciling" is True`},
		{"Stalled without a message", newDatabase(unready(), having(stalled(), noMessage)), ctrlkittest.ConditionRuleHasMessage, `"Stalled" is True`},
		{"Paused without a message", newDatabase(ready(), having(paused(), noMessage)), ctrlkittest.ConditionRuleHasMessage, `"Paused" is True`},
		{"Unknown without a message", newDatabase(ready(), with("SecretFound", isUnknown, "New", "")), ctrlkittest.ConditionRuleHasMessage, "say what is missing"},
		{"a timestamp", message("failed at 2026-07-01T12:00:00Z"), ctrlkittest.ConditionRuleHoldsStill, `the message has a timestamp, "2026-07-01T12:00:00Z"`},
		{"a timestamp with an offset", message("at 2026-07-01T12:00:00.123+02:00."), ctrlkittest.ConditionRuleHoldsStill, `"2026-07-01T12:00:00.123+02:00"`},
		{"a timestamp of time.Time", message("at 2026-07-01 12:00:00 +0000 UTC"), ctrlkittest.ConditionRuleHoldsStill, `"2026-07-01 12:00:00"`},
		{"a pointer", message("got &{0xc0001a2b40}"), ctrlkittest.ConditionRuleHoldsStill, `the message has an address in memory, "0xc0001a2b40"`},
		{"a UUID", message("request id: 1b4e28ba-2fa1-11d2-883f-0016d3cca427"), ctrlkittest.ConditionRuleHoldsStill, `a UUID, "1b4e28ba-2fa1-11d2-883f-0016d3cca427"`},
		{"a map", message("labels are map[app:db tier:1]"), ctrlkittest.ConditionRuleHoldsStill, `a map as Go prints it, "map[app:db tier:1]"`},
		{"an empty map", message("labels are map[]"), ctrlkittest.ConditionRuleHoldsStill, `"map[]"`},
		{"a long message", message(strings.Repeat("x", 32769)), ctrlkittest.ConditionRuleShortEnough, "the message has 32769 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := ctrlkittest.ConditionProblems(tt.obj)
			if len(got) != 1 || got[0].Rule != tt.rule || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %q, want %q with %q", got, tt.rule, tt.want)
			}
			if diff := cmp.Diff(got, ctrlkittest.ConditionProblems(toUnstructured(t, tt.obj))); diff != "" {
				t.Errorf("as a struct, and as what a dynamic client reads (-struct +dynamic):\n%s", diff)
			}
		})
	}
}

func noMessage(c *metaCondition) { c.Message = "" }

func TestRightObjectsHaveNoProblems(t *testing.T) {
	old := func(c metav1.Condition) metav1.Condition {
		return having(c, func(c *metaCondition) { c.ObservedGeneration = 2 })
	}
	message := func(text string) *database {
		return newDatabase(ready(), with("SecretFound", metav1.ConditionFalse, "NotFound", text))
	}
	deleted := func(d *database) *database { d.DeletionTimestamp = &noon; return d }
	without := newDatabase(having(ready(), func(c *metaCondition) { c.ObservedGeneration = 0 }))
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
			if got := ctrlkittest.ConditionProblems(tt.obj); len(got) > 0 {
				t.Errorf("got %q", got)
			}
			if got := ctrlkittest.ConditionProblems(toUnstructured(t, tt.obj)); len(got) > 0 {
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
			got := ctrlkittest.ConditionProblems(tt.obj)
			if len(got) != 1 || got[0].Rule != ctrlkittest.ConditionRuleReadable || !strings.Contains(got[0].Text, tt.want) {
				t.Errorf("got %q, want %q with %q", got, ctrlkittest.ConditionRuleReadable, tt.want)
			}
			if got := ctrlkittest.ConditionChangeProblems(tt.obj, tt.obj); len(got) == 0 || got[0].Rule != ctrlkittest.ConditionRuleReadable {
				t.Errorf("between versions: got %q, want %q", got, ctrlkittest.ConditionRuleReadable)
			}
		})
	}
}

// All problems are reported, each once, those of the whole first and then those of each condition.
func TestProblemsReportsEverything(t *testing.T) {
	bad := metav1.Condition{Type: "A b", Message: "0xc000000001 at 2026-07-01T12:00:00Z and 2026-07-01T13:00:00Z"}
	want := []ctrlkittest.ConditionRule{
		ctrlkittest.ConditionRuleSaysWhy,
		ctrlkittest.ConditionRuleValid, ctrlkittest.ConditionRuleValid, ctrlkittest.ConditionRuleValid, ctrlkittest.ConditionRuleTimed, ctrlkittest.ConditionRuleObserved,
		ctrlkittest.ConditionRuleHoldsStill, ctrlkittest.ConditionRuleHoldsStill,
		ctrlkittest.ConditionRuleHasMessage,
	}
	var got []ctrlkittest.ConditionRule
	for _, p := range ctrlkittest.ConditionProblems(newDatabase(bad, having(unready(), noMessage))) {
		got = append(got, p.Rule)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
