// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CheckConditions reports with t.Errorf everything that is wrong with the conditions of an object
// whose operator is idle. It changes nothing, and contacts no cluster. See [ConditionProblems].
func CheckConditions(t testing.TB, obj client.Object) {
	t.Helper()
	for _, p := range ConditionProblems(obj) {
		t.Errorf("%s: %s", nameOf(obj), p)
	}
}

// CheckConditionChange reports with t.Errorf everything that is wrong between two versions of an
// object. See [ConditionChangeProblems].
func CheckConditionChange(t testing.TB, before, after client.Object) {
	t.Helper()
	for _, p := range ConditionChangeProblems(before, after) {
		t.Errorf("%s: %s", nameOf(after), p)
	}
}

// nameOf returns "Kind namespace/name", with the Go type if the kind is not known.
func nameOf(obj client.Object) string {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
	}
	return kind + " " + strings.TrimPrefix(client.ObjectKeyFromObject(obj).String(), "/")
}
