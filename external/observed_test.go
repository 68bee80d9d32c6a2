// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

const allowAnnotation = "policy.ctrlkit.dev/allow"

// To import a resource in order to read it, its object only observes: the connection details are
// published, unless the resource is that of another object.
func TestObserveOnlyPublishes(t *testing.T) {
	for owner, want := range map[string]bool{"": true, "another": false} {
		onDesk(t, "owner "+owner, byName(), func(t *testing.T, d *siloDesk) {
			d.publishing()
			theirs(d, owner)
			d.store.all["x"].size = "small"
			names(d, "x")
			d.annotate(allowAnnotation, "observe")
			if want {
				d.settle()
			} else {
				d.fails()
				d.expect("Ready", "False BelongsToAnother")
			}
			if got := d.secret() != nil; got != want {
				t.Errorf("published %t", got)
			}
			if calls := d.store.take(); strings.Contains(calls, "create") || strings.Contains(calls, "update") {
				t.Errorf("calls %s", calls)
			}
		})
	}
}

func TestObserveAndLateInitialize(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		theirs(d, "")
		names(d, "x")
		d.change(func(obj *Silo) { obj.Spec.Region = "" })
		d.annotate(allowAnnotation, "observe,late-initialize")
		d.settle()
		if region := d.get().Spec.Region; region != "north" || d.store.all["x"].size != "huge" {
			t.Errorf("region %q, size %s", region, d.store.all["x"].size)
		}
	})
}

// What does not exist, and may not be created, is not on its way.
func TestObserveOnlyOfWhatIsAbsent(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.annotate(allowAnnotation, "observe")
		d.settle()
		d.expect("Ready", "False Absent: ")
		d.expect("Stalled", "True Absent: ")
	})
}

// A client that can't be closed takes nothing from what was observed.
func TestCloseFails(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.store.fail = failing("close", errors.New("already closed"))
		d.settle()
		d.expect("Ready", "True")
	})
}

// The users of an object, and then the operator, say how often a resource is observed.
func TestPollOfAnObject(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.options.PollOf = func(obj *Silo) time.Duration {
			if obj.Spec.Size == "small" {
				return time.Hour
			}
			return 0
		}
		d.restart()
		within := func(poll time.Duration) {
			t.Helper()
			if after := d.settle().RequeueAfter; after < poll*9/10 || after > poll*11/10 {
				t.Errorf("polled after %s, want %s", after, poll)
			}
		}
		within(time.Hour)
		d.annotate("external.ctrlkit.dev/poll", "10m")
		within(10 * time.Minute)
		d.annotate("external.ctrlkit.dev/poll", "soon")
		d.fails()
		d.expect("Ready", "False WrongAnnotation: ")
		d.change(func(obj *Silo) { delete(obj.Annotations, "external.ctrlkit.dev/poll"); obj.Spec.Size = "large" })
		within(time.Minute)
	})
}

// A resource that is kept on purpose is no orphan. That it can't be released prevents nothing.
func TestRetainedIsNoOrphan(t *testing.T) {
	for _, fails := range []bool{false, true} {
		eachIdentityOf(t, map[bool]string{true: "fails, "}[fails], func(t *testing.T, d *siloDesk) {
			d.settle()
			d.annotate("policy.ctrlkit.dev/reclaim", "retain")
			if fails {
				d.store.fail = func(string) error { return errors.New("connection refused") }
			}
			d.delete()
			d.passes()
			if d.get() != nil || len(d.store.all) != 1 {
				t.Fatalf("the object is there, or %v", d.store.ids())
			}
			owner := d.store.all[d.store.ids()[0]].owner
			warned := slices.ContainsFunc(recorded(d), func(e string) bool { return strings.Contains(e, "NotReleased") })
			if (owner != "") != fails || warned != fails {
				t.Errorf("the owner is %q, warned %t", owner, warned)
			}
		})
	}
}
