// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/external"
)

// normals returns the reasons of the Normal events since it was called last.
func normals(d *siloDesk) []string {
	var all []string
	for _, e := range recorded(d) {
		if rest, ok := strings.CutPrefix(e, "Normal "); ok {
			reason, _, _ := strings.Cut(rest, " ")
			all = append(all, reason)
		}
	}
	return all
}

// A change of a resource has an event when it is done, and before that one when it has begun, unless
// it is done in the same reconcile, however many attempts and reconciles that takes.
func TestCallsHaveEvents(t *testing.T) {
	try := func(d *siloDesk) {
		for range 4 {
			_, _ = d.reconcile()
			time.Sleep(10 * time.Minute)
		}
	}
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		expect := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, normals(d)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		d.store.fail = failing("create", external.Refused(errors.New("no quota")))
		try(d)
		expect("four attempts", "Creating")
		d.restart()
		try(d)
		expect("after a restart")
		d.store.fail, d.store.seen = nil, busy(external.Creating)
		try(d)
		expect("as long as the system creates it")
		d.restart()
		d.store.seen = nil
		try(d)
		expect("created, after a restart", "Created")
		try(d)
		expect("converged")
		d.restart()
		try(d)
		expect("converged, after a restart")
		d.change(func(obj *Silo) { obj.Spec.Size = "large" })
		d.settle()
		expect("updated at once", "Updated")
		d.store.seen = busy(external.Updating)
		try(d)
		d.store.seen = nil
		try(d)
		expect("updated by the system itself")
		d.delete()
		d.store.seen = busy(external.Deleting)
		_, _ = d.reconcile()
		d.store.seen = nil
		for d.get() != nil {
			_, _ = d.reconcile()
		}
		if got := normals(d); len(got) == 0 || got[len(got)-1] != "Deleted" || slices.Contains(got, "Creating") {
			t.Errorf("deleted: %q", got)
		}
	})
}
