// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/inject"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
)

func parsed(t *testing.T, text string) fault.Plan {
	t.Helper()
	p, err := fault.ParsePlan(text)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// boundaryOf returns the boundary of a run of a plan, before a server that is not in the network.
func boundaryOf(t *testing.T, plan string) *boundary {
	t.Helper()
	clock := newClock()
	w := &world{judge: judge.New(judge.Options{Now: time.Now}), later: &later{clock: clock, quiet: time.Second, most: time.Minute}}
	b := newBoundary(w, newTrace())
	b.catalog, b.awake, b.changes = &inject.Catalog{}, func() {}, func(string) int { return 0 }
	server := apiserver.New(apiserver.Options{Now: time.Now, Seed: 1})
	w.begin(func(do func(*apiserver.Server)) { do(server) }, parsed(t, plan), b, b.trace, b.catalog)
	server.OnChange(w.changed)
	return b
}

// ask lets the operator ask for something.
func (b *boundary) ask(t *testing.T, method, path, body string) *inject.Answer {
	t.Helper()
	r, err := apiserver.NewRequest(method, path, "application/json", []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return b.answer(r)
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
	b := boundaryOf(t, "no fault")
	for range 3 { // reads 1 to 3: 2 and 3 are repeated
		b.ask(t, http.MethodGet, "/api/v1/pods", "")
	}
	b.ask(t, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
	b.ask(t, http.MethodGet, "/api/v1/pods", "") // read 4
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
	b := boundaryOf(t, "no fault")
	for _, kind := range []string{"configmaps", "secrets", "serviceaccounts", "limitranges"} {
		path := "/api/v1/namespaces/default/" + kind
		if _, err := b.world.cluster.Ask("other", http.MethodPost, path, "application/json", []byte(`{"metadata":{"name":"a"}}`)); err != nil {
			t.Fatal(err)
		}
		b.ask(t, http.MethodPatch, path+"/a", `{"metadata":{"resourceVersion":"1"}}`)
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
