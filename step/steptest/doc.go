// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package steptest runs one step as an engine of package step would, in a unit test:
//
//	func TestDivide(t *testing.T) {
//		seven := &v1.Simple{Spec: v1.SimpleSpec{Dividend: 7, Divisor: 2}}
//		got := steptest.Do(t, step.Func("Divide", divide), seven)
//		want := `{"status":{"quotient":3,"remainder":1}}`
//		if got.Saved != want || got.Err != nil {
//			t.Errorf("saved %s and error %v, want %s", got.Saved, got.Err, want)
//		}
//	}
//
// The object, and what else [WithObjects] puts into the cluster, live in an API server in memory,
// package internal/sim/apiserver: it validates, keeps resource versions and field owners, and refuses what
// the real one refuses. With [WithCRDs] it knows the schemas of the operator's own kinds; without,
// it accepts any fields. A test takes some milliseconds. In a testing/synctest bubble the time
// stands still.
//
// There is no stale cache, no second reconcile and no fault but those of [WithInterceptor]: package
// sim tests an operator with all of that.
package steptest
