// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

func update(*apiserver.Request) *fault.Write {
	return &fault.Write{Verb: "update", Exists: true, Conditional: true}
}

// plansFor returns the plans of the places of a run, in the order in which they are begun.
func plansFor(b *boundary, checkpoints int) (plans []fault.Plan) {
	x := exploration{Options: &Options{Choice: explore.Choice{Orders: 1}}, reference: &reference{places: placesOf(b, checkpoints)}}
	all := x.plans()
	for _, i := range explore.Order(all, x.reference.places) {
		plans = append(plans, all[i])
	}
	return plans
}

// What an operator that polls reads while nothing changes comes after everything else, and a read
// after a change does not.
func TestRepeatedReadsComeLast(t *testing.T) {
	changes := 0
	b := newBoundary(fault.Plan{}, newTrace(), nil)
	b.awake, b.state, b.describe = func() {}, func() int { return changes }, update
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
	var all, reads []string
	for _, p := range plansFor(b, 1) {
		all = append(all, p.String())
		if f := p.Faults[0]; f.Kind == fault.RefuseRead && f.How == "429" {
			reads = append(reads, p.String())
		}
	}
	want := []string{"refuse read 1: 429", "refuse read 4: 429", "refuse read 2: 429", "refuse read 3: 429"}
	if diff := cmp.Diff(want, reads); diff != "" {
		t.Errorf("plans of reads (-want +got):\n%s", diff)
	}
	for i, p := range all {
		if late := strings.HasPrefix(p, "refuse read 2") || strings.HasPrefix(p, "refuse read 3"); late != (i >= len(all)-8) {
			t.Errorf("plan %d of %d is %q", i, len(all), p)
		}
	}
}

// A short budget meets each kind of fault, and each kind of request.
func TestEachKindOfFaultComesEarly(t *testing.T) {
	b := newBoundary(fault.Plan{}, newTrace(), nil)
	b.awake, b.state, b.describe = func() {}, func() int { return 0 }, update
	for _, kind := range []string{"configmaps", "secrets", "services", "pods"} {
		r, err := apiserver.NewRequest("PUT", "/api/v1/namespaces/default/"+kind+"/a", "application/json", []byte(`{"metadata":{"name":"a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		b.arrive(fault.AtWrite, r)
	}
	kinds, refused, writes := map[string]bool{}, map[string]bool{}, map[int]bool{}
	plans := plansFor(b, 2)
	for _, p := range plans[:6] {
		f := p.Faults[0]
		kinds[f.Kind.String()+f.How], writes[f.At] = true, true
	}
	if len(kinds) != 6 || len(writes) != 4 {
		t.Errorf("the first six plans are %q", plans[:6])
	}
	for _, p := range plans[:24] {
		if f := p.Faults[0]; f.Kind == fault.RefuseWrite {
			refused[f.How] = true
		}
	}
	if len(refused) < 4 {
		t.Errorf("of %q, each write is refused alike", plans[:24])
	}
}

// The requests of two runs need not have the same order: a fault of another client strikes only at
// a request that it fits, and is missed otherwise.
func TestFaultOfAnotherRequest(t *testing.T) {
	for text, want := range map[string]bool{
		"delete the object before write 1": false, "occupy the name before write 1": true, "crash before write 1": true,
		"recreate configmaps default/a after write 1": false,
	} {
		given, err := fault.ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		b := newBoundary(given, newTrace(), nil)
		b.awake, b.state = func() {}, func() int { return 0 }
		b.describe = func(*apiserver.Request) *fault.Write { return &fault.Write{Verb: "create", Named: true} }
		r, err := apiserver.NewRequest("POST", "/api/v1/namespaces/default/configmaps", "application/json", []byte(`{"metadata":{"name":"a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, strikes, _ := b.arrive(fault.AtWrite, r); (strikes != nil) != want || b.fired[0] != want {
			t.Errorf("%q strikes at a creation: %t", text, strikes != nil)
		}
	}
}
