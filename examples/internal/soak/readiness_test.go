// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/condition"
)

func TestReadinessProblem(t *testing.T) {
	is := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{
			Type: condition.Ready, Status: status, Reason: reason, ObservedGeneration: 2, LastTransitionTime: metav1.NewTime(seconds(60)),
		}}
	}
	tests := []struct {
		name        string
		want        readiness
		conditions  []metav1.Condition
		generation  int64
		steadySince time.Time
		problem     string
	}{
		{name: "ready", want: readiness{ready: true}, conditions: is("True", "Ready"), generation: 2, steadySince: seconds(60)},
		{name: "rightly not ready", want: readiness{reason: "InvalidInput"}, conditions: is("False", "InvalidInput"), generation: 2},
		{name: "no condition", want: readiness{ready: true}, generation: 2, problem: "no condition"},
		{name: "a false accusation", want: readiness{ready: true}, conditions: is("False", "HotLoop"), generation: 2, problem: "reason HotLoop"},
		{name: "not known", want: readiness{ready: true}, conditions: is("Unknown", "NotReached"), generation: 2, problem: "want True"},
		{name: "ready and should not be", want: readiness{reason: "InvalidInput"}, conditions: is("True", "Ready"), generation: 2, problem: "because of InvalidInput"},
		{name: "the wrong reason", want: readiness{reason: "InvalidInput"}, conditions: is("False", "OwnedByAnother"), generation: 2, problem: "because of InvalidInput"},
		{name: "an old generation", want: readiness{ready: true}, conditions: is("True", "Ready"), generation: 3, problem: "generation 2, want 3"},
		{name: "it flaps", want: readiness{ready: true}, conditions: is("True", "Ready"), generation: 2, steadySince: seconds(59), problem: "no change since"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := test.want.problem(test.conditions, test.generation, test.steadySince)
			if (got == "") != (test.problem == "") || !strings.Contains(got, test.problem) {
				t.Errorf("problem %q, want %q", got, test.problem)
			}
		})
	}
}
