// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// tick is how often the calm of a test is looked at.
const tick = 50 * time.Millisecond

// An operator is calm that asks for nothing, is shown nothing, and has no use for a processor.
func TestCalm(t *testing.T) {
	for name, test := range map[string]struct {
		do   func(c *calm)
		want time.Duration
	}{
		"nothing":                   {func(*calm) {}, time.Second},
		"next to no processor":      {func(c *calm) { c.look(2*time.Millisecond, tick) }, time.Second},
		"a processor":               {func(c *calm) { c.look(30*time.Millisecond, tick) }, 0},
		"another process":           {func(c *calm) { c.look(time.Microsecond, tick) }, 0},
		"a process that is unknown": {func(c *calm) { c.look(0, tick) }, 0},
		"a request":                 {func(c *calm) { c.begin(); c.end() }, 0},
		"a request under way":       {func(c *calm) { c.begin() }, 0},
		"an event":                  {func(c *calm) { c.show() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCalm(newClock(), time.Minute)
				c.used = time.Millisecond
				time.Sleep(time.Second)
				test.do(c)
				if got := c.lasts(); got != test.want {
					t.Errorf("calm for %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A pause is between two requests, also if the operator uses a processor before the second one. A request
// that an event or a start has caused, or beside another one, does not end a pause.
func TestPauses(t *testing.T) {
	wait := func(d time.Duration) func(*calm) { return func(*calm) { time.Sleep(d) } }
	ask := func(c *calm) { c.begin(); c.end() }
	work := func(c *calm) { c.look(c.used+tick, tick) }
	for name, test := range map[string]struct {
		do   []func(*calm)
		want time.Duration
	}{
		"of the start":                {[]func(*calm){wait(3 * time.Second), ask}, 0},
		"of a start again":            {[]func(*calm){ask, (*calm).start, wait(3 * time.Second), ask}, 0},
		"by itself":                   {[]func(*calm){ask, wait(time.Second), ask, wait(2 * time.Second), ask, wait(time.Second), ask}, 2 * time.Second},
		"with work before":            {[]func(*calm){ask, wait(time.Second), work, ask}, time.Second},
		"because of an event":         {[]func(*calm){ask, wait(time.Second), (*calm).show, ask}, 0},
		"beside a request":            {[]func(*calm){(*calm).begin, wait(time.Second), ask}, 0},
		"that nothing is waited for":  {[]func(*calm){ask, wait(time.Minute), ask}, 0},
		"from the end of the request": {[]func(*calm){(*calm).begin, (*calm).begin, wait(time.Second), (*calm).end, (*calm).end, wait(2 * time.Second), ask}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCalm(newClock(), time.Minute)
				for _, do := range test.do {
					do(c)
				}
				if got := c.longest(); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A calm operator is waited for twice as long as it was away, and never longer than one that is not calm.
func TestWaits(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]time.Duration{
		0: time.Second, 400 * time.Millisecond: time.Second, time.Second: 2 * time.Second, 3 * time.Second: 4 * time.Second,
	} {
		if got := waits(4*time.Second, pause); got != want {
			t.Errorf("after a pause of %s: got %s, want %s", pause, got, want)
		}
	}
}

// calmRunner returns a run that is about to be in a step like that of the runs without faults, of an operator that
// has been calm for a second.
func calmRunner(t *testing.T, plan string) *runner {
	t.Helper()
	b := boundaryOf(t, plan)
	r := &runner{
		Options: &Options{Quiet: 4 * time.Second}, plan: parsed(t, plan), boundary: b, world: b.world, due: func() time.Time { return time.Time{} },
		habits: &habits{}, history: newHistory(b.trace, b.world.later.clock),
	}
	time.Sleep(time.Second)
	return r
}

// A part of the quiet time is enough where nothing but known timers can be left, and nowhere else.
func TestEnough(t *testing.T) {
	const part, quiet = time.Second, 4 * time.Second
	for name, test := range map[string]struct {
		plan string
		do   func(t *testing.T, r *runner)
		want time.Duration
	}{
		"calm":                      {"crash after write 9", func(*testing.T, *runner) {}, part},
		"without faults":            {"no fault", func(*testing.T, *runner) {}, quiet},
		"habits that are not known": {"crash after write 9", func(_ *testing.T, r *runner) { r.habits = nil }, quiet},
		"not calm":                  {"crash after write 9", func(_ *testing.T, r *runner) { r.boundary.calm.show() }, quiet},
		"a pause without faults":    {"crash after write 9", func(_ *testing.T, r *runner) { r.habits.pause = 700 * time.Millisecond }, quiet},
		"a pause in this run":       {"crash after write 9", func(_ *testing.T, r *runner) { r.boundary.calm.pause = 3 * time.Second }, quiet},
		"a player has something to do": {"crash after write 9", func(_ *testing.T, r *runner) {
			r.due = func() time.Time { return time.Now().Add(2 * time.Second) }
		}, quiet},
		"a player has something to do later": {"crash after write 9", func(_ *testing.T, r *runner) {
			r.due = func() time.Time { return time.Now().Add(time.Minute) }
		}, part},
		"a watch that is not open again": {"crash after write 9", func(_ *testing.T, r *runner) { r.boundary.most = 1 }, quiet},
		"another process":                {"crash after write 9", func(_ *testing.T, r *runner) { r.boundary.setDown(false) }, quiet},
		"a fault that has struck": {"refuse write 1: 500", func(t *testing.T, r *runner) {
			r.boundary.ask(t, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
		}, quiet},
		"in the step after it": {"refuse write 1: 500", func(t *testing.T, r *runner) {
			r.boundary.ask(t, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`)
			r.isCalm(0)
			r.disturbances.before = r.disturbances.now
		}, part},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := calmRunner(t, test.plan)
				test.do(t, r)
				if got := r.enough(true); got != test.want {
					t.Errorf("got %s, want %s", got, test.want)
				}
				if got := r.enough(false); got != 2*quiet {
					t.Errorf("with no state to reach: got %s", got)
				}
			})
		})
	}
}

// Requests beside the work of an operator do not count, and a watch is not under way.
func TestRequestsThatCount(t *testing.T) {
	for path, counts := range map[string]bool{
		"/apis": false, "/apis/apps/v1": false, "/openapi/v3": false,
		"/apis/coordination.k8s.io/v1/namespaces/default/leases/a": false, "/api/v1/pods": true, "/api/v1/pods?watch=true": false,
	} {
		request, err := apiserver.NewRequest(http.MethodGet, path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		b := boundaryOf(t, fault.Plan{}.String())
		end := b.begin(request)
		if under := b.calm.under > 0; under != counts {
			t.Errorf("%s is under way: %t, want %t", path, under, counts)
		}
		if end(); b.calm.under != 0 {
			t.Errorf("%s is under way when it was answered", path)
		}
	}
}
