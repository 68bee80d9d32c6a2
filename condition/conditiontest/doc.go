// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditiontest checks the conditions of objects, of any operator: that others can read them, that they fit together, and that they hold still.
//
//	func TestConditions(t *testing.T) {
//		...
//		conditiontest.Check(t, backup)               // when the operator has nothing left to do
//		conditiontest.CheckChange(t, before, backup) // for two versions that follow one another
//	}
//
// An object is a pointer to a struct with a field Status.Conditions, a [condition.Object], or an *unstructured.Unstructured. What is wrong is a
// [Problem], whose [Rule] says which promise is broken; [Problems] and [ChangeProblems] return them for whoever wants to filter.
//
// The rules are those of the API server, of kstatus, which "kubectl wait", Argo CD and Flux understand, and what follows from watches: a
// condition that changes without a reason makes a write, and a write makes a reconcile. The package does not know what the conditions of
// an operator mean: whether "SecretFound" is good when it is True, and whether that is so, is left to the operator's own tests.
package conditiontest
