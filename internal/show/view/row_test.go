// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/journal"
)

// Without a journal, the conditions of an engine tell a failure from a wait, and those of others
// are not taken for them.
func TestStateByConditions(t *testing.T) {
	for _, test := range []struct {
		name, reason string
		reconciling  string // its reason, empty without the condition
		result       journal.Result
		want         State
	}{
		{"a wait", "Waiting", "Waiting", "", Waiting},
		{"a resource that is being created", "InProgress", "InProgress", "", Waiting},
		{"a failure", "Forbidden", "Forbidden", "", Failing},
		{"a failure that may pass", "TemporaryError", "TemporaryError", "", Failing},
		{"a reason of the operator's own", "SecretNotFound", "SecretNotFound", "", NotReady},
		{"another operator that has no Reconciling", "Forbidden", "", "", NotReady},
		{"another operator whose Reconciling says something else", "Forbidden", "Progressing", "", NotReady},
		{"what a journal says comes first", "Forbidden", "Forbidden", journal.ResultWaiting, Waiting},
	} {
		conditions := []any{map[string]any{"type": "Ready", "status": "False", "reason": test.reason, "message": "m"}}
		if test.reconciling != "" {
			conditions = append(conditions, map[string]any{"type": "Reconciling", "status": "True", "reason": test.reconciling, "message": "m"})
		}
		obj := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
		if got := rowOf(obj, databases, lastRun{result: test.result}, true).state; got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
