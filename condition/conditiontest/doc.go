// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditiontest checks the conditions of objects of any operator: whether other tools can
// read them, whether they are consistent, and whether they change only for a reason.
//
//	func TestConditions(t *testing.T) {
//		...
//		conditiontest.Check(t, backup)               // when the operator is idle
//		conditiontest.CheckChange(t, before, backup) // for two consecutive versions
//	}
//
// An object is a pointer to a struct with a field Status.Conditions, a [condition.Accessor], or an
// *unstructured.Unstructured. [Problems] and [ChangeProblems] return what is wrong as a list of
// [Problem], each with the [Rule] that is broken, for tests that filter.
//
// The rules come from the API server, from kstatus, which "kubectl wait", Argo CD and Flux
// understand, and from watches: a condition that changes without a reason causes a write, and a
// write causes a reconcile. The package does not know what the conditions of an operator mean:
// whether "SecretFound" should be True is left to the operator's own tests.
package conditiontest
