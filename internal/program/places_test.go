// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
)

// What an operator that polls reads while nothing changes comes after everything else, and a read
// after a change does not.
func TestRepeatedReadsComeLast(t *testing.T) {
	changes := 0
	b := newBoundary(fault.Plan{}, newTrace())
	b.awake, b.state, b.exists = func() {}, func() int { return changes }, func(*apiserver.Request) bool { return true }
	ask := func(method, path string) {
		t.Helper()
		r, err := apiserver.NewRequest(method, path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		point := fault.AtRead
		if method != "GET" {
			point = fault.AtWrite
		}
		b.arrive(point, r)
	}
	for range 3 { // reads 1 to 3: 2 and 3 are repeated
		ask("GET", "/api/v1/pods")
	}
	ask("PUT", "/api/v1/namespaces/default/configmaps/a")
	changes++
	ask("GET", "/api/v1/pods") // read 4
	var got []string
	for _, p := range plansFor(b, 0) {
		if p.Faults[0].Kind != fault.RefuseRead || p.Faults[0].How == "429" {
			got = append(got, p.String())
		}
	}
	want := []string{"refuse read 1: 429", "refuse read 4: 429", "refuse read 2: 429", "refuse read 3: 429"}
	if diff := cmp.Diff(want, got[len(got)-len(want):]); diff != "" || len(got) == len(want) {
		t.Errorf("of the plans %q, the last (-want +got):\n%s", got, diff)
	}
}
