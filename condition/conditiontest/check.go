// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package conditiontest

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check reports with t.Errorf everything that is wrong with the conditions of an object whose
// operator is idle. It changes nothing, and contacts no cluster. See [Problems].
func Check(t testing.TB, obj client.Object) {
	t.Helper()
	for _, p := range Problems(obj) {
		t.Errorf("%s: %s", nameOf(obj), p)
	}
}

// CheckChange reports with t.Errorf everything that is wrong between two versions of an object. See
// [ChangeProblems].
func CheckChange(t testing.TB, before, after client.Object) {
	t.Helper()
	for _, p := range ChangeProblems(before, after) {
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
