// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A rate that does not allow two calls in one reconcile delays the creation, and does not prevent
// it: each call keeps its place, also beside another object that takes places.
func TestRateOfOneCall(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.options.Calls.PerSecond, d.options.Calls.Burst = 0.01, 1
		d.restart()
		other := d.get()
		other.Name, other.ResourceVersion, other.UID = "other", "", ""
		d.must(d.client.Create(t.Context(), other))
		began := time.Now()
		for len(d.store.all) < 2 || d.conditions()["Available"] != "True Available" {
			if time.Since(began) > time.Hour {
				t.Fatalf("after an hour: %v, and the store has %v", d.conditions(), d.store.ids())
			}
			_, err := d.reconcileOne(client.ObjectKeyFromObject(other))
			d.must(err)
			result := d.passes()
			time.Sleep(max(result.RequeueAfter, time.Second))
		}
		calls := strings.Split(d.store.take(), " ")
		if made := strings.Count(strings.Join(calls, " "), "create"); made != 2 {
			t.Errorf("%d calls of Create", made)
		}
		if took := time.Since(began); float64(len(calls)) > 2+took.Seconds()*0.01 {
			t.Errorf("%d calls within %s: %v", len(calls), took, calls)
		}
	})
}

// A call that is interrupted keeps its place, and places that nothing uses any more are forgotten.
func TestPlacesAreForgotten(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.options.Calls.PerSecond, d.options.Calls.Burst = 0.001, 1
		d.restart()
		d.passes()
		time.Sleep(time.Hour)
		result := d.passes()
		if result.RequeueAfter == 0 {
			t.Errorf("%+v", result)
		}
	})
}
