// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/external"
)

// verbs are what is called by what the policy allows. Edited is a silo that differs from the spec.
var verbs = []struct {
	name, key, value string
	world            string // none, same, edited
	deleted          bool
	calls            string
	left             int    // silos afterwards
	available        string // the condition, as long as the object exists
}{
	{"create", "allow", "observe,create", "none", false, "observe create observe", 1, "True"},
	{"no create", "allow", "observe,update,delete", "none", false, "observe", 0, "False Absent: the resource does not exist, and may not be created: annotation policy.ctrlkit.dev/allow"},
	{"no create, and exists", "allow", "observe,update,delete", "edited", false, "observe update observe", 1, "True"},
	{"update", "allow", "observe,update", "edited", false, "observe update observe", 1, "True"},
	{"no update", "allow", "observe,create,delete", "edited", false, "observe", 1, "True"},
	{"observe alone", "allow", "observe", "edited", false, "observe", 1, "True"},
	{"observe and delete", "allow", "observe,delete", "edited", false, "observe", 1, "True"},
	{"skip", "reconcile", "skip", "edited", false, "observe", 1, "True"},
	{"delete", "allow", "observe,delete", "same", true, "observe delete observe", 0, ""},
	{"no delete", "allow", "observe,create,update", "same", true, "observe release", 1, ""},
	{"retain", "reclaim", "retain", "same", true, "observe release", 1, ""},
	{"skip, deleted", "reconcile", "skip", "same", true, "", 1, ""},
	{"detach", "reconcile", "detach-on-delete", "same", true, "observe release", 1, ""},
}

func TestPolicyVerbs(t *testing.T) {
	for _, tt := range verbs {
		onDesk(t, tt.name, byName(), func(t *testing.T, d *siloDesk) {
			if tt.world != "none" {
				d.settle()
			}
			if tt.world == "edited" {
				d.store.all[external.IDOf(d.get())].size = "edited"
			}
			d.annotate("policy.ctrlkit.dev/"+tt.key, tt.value)
			if tt.deleted {
				d.delete()
			}
			d.store.take()
			d.passes()
			if calls := d.store.take(); calls != tt.calls {
				t.Errorf("calls %q, want %q", calls, tt.calls)
			}
			if len(d.store.all) != tt.left {
				t.Errorf("%d silos", len(d.store.all))
			}
			if (d.get() == nil) != tt.deleted {
				t.Errorf("the object: %v", d.get())
			}
			if tt.available != "" {
				d.expect("Available", tt.available)
			}
		})
	}
}

func TestLateInitialization(t *testing.T) {
	for name, tt := range map[string]struct{ allow, region, want string }{
		"chosen by the system": {"*", "", "north"},
		"chosen by the user":   {"*", "south", "south"},
		"not allowed":          {"observe,create,update,delete", "", ""},
	} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			d.annotate("policy.ctrlkit.dev/allow", tt.allow)
			d.change(func(obj *Silo) { obj.Spec.Region = tt.region })
			d.settle()
			got := d.get()
			if got.Spec.Region != tt.want || got.Spec.Size != "small" {
				t.Errorf("spec %+v", got.Spec)
			}
			d.expect("Ready", "True")
			if got.Status.ObservedGeneration != got.Generation {
				t.Errorf("generation %d, observed %d", got.Generation, got.Status.ObservedGeneration)
			}
			if calls := d.store.take(); strings.Count(calls, "create") != 1 {
				t.Errorf("calls %s", calls)
			}
		})
	}
}

func TestResourceOfNameIsNotTakenOver(t *testing.T) {
	for name, owner := range map[string]string{"of no object": "", "of another object": "another-uid"} {
		remedy := map[string]string{"": external.IDAnnotation, "another-uid": "external.ctrlkit.dev/adopt-from" + " to another-uid"}[owner]
		onDesk(t, name, external.ByName(func(*Silo) (string, error) { return "logs", nil }), func(t *testing.T, d *siloDesk) {
			d.store.all["logs"] = &stored{id: "logs", owner: owner, size: "huge"}
			d.fails()
			obj := d.get()
			if len(obj.Finalizers) > 0 || external.IDOf(obj) != "" || d.store.all["logs"].size != "huge" {
				t.Errorf("it is claimed: %v", obj.ObjectMeta)
			}
			d.expect("Ready", "False BelongsToAnother: ")
			if got := d.conditions()["Stalled"]; !strings.Contains(got, remedy) {
				t.Errorf("Stalled does not name the remedy: %s", got)
			}
			d.delete()
			d.settle()
			if d.get() != nil || len(d.store.all) != 1 {
				t.Errorf("after the deletion, the store has %v", d.store.ids())
			}
		})
	}
}

func TestAdoption(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.store.all["theirs"] = &stored{id: "theirs", size: "huge"}
		d.annotate(external.IDAnnotation, "theirs")
		d.settle()
		d.expect("Ready", "True")
		if calls := d.store.take(); strings.Contains(calls, "create") || d.store.all["theirs"].size != "small" {
			t.Errorf("calls %s, size %s", calls, d.store.all["theirs"].size)
		}
		d.delete()
		d.settle()
		d.gone()
	})
}

// An object may be restored from a backup, and its resource belong to the object that it was.
func TestResourceOfAnotherOwnerIsNotDeleted(t *testing.T) {
	inDesk(t, byName(), func(t *testing.T, d *siloDesk) {
		d.settle()
		d.store.all[external.IDOf(d.get())].owner = "another-uid"
		d.delete()
		d.settle()
		if d.get() != nil || len(d.store.all) != 1 {
			t.Errorf("after the deletion, the store has %v", d.store.ids())
		}
	})
}

func TestUnknownCreationNeedsAPerson(t *testing.T) {
	inDesk(t, external.ByNothing[*Silo](), func(t *testing.T, d *siloDesk) {
		d.store.fail = failing("create", errors.New("connection reset")) // the answer is lost
		d.fails()
		d.store.fail = nil
		time.Sleep(time.Hour)
		d.fails()
		d.expect("Ready", "False CreationUnknown: Silo: a resource was being created at ")
		for _, text := range []string{external.IDAnnotation, external.IntentAnnotation} {
			if got := d.conditions()["Stalled"]; !strings.Contains(got, text) {
				t.Errorf("the remedy does not name %s: %s", text, got)
			}
		}
		d.delete()
		if _, err := d.reconcile(); err == nil || d.get() == nil {
			t.Errorf("the object is gone, and nothing shows whether its resource is: %v", err)
		}
		// The person has found nothing.
		d.annotate(external.IntentAnnotation, "none")
		d.settle()
		if d.get() != nil {
			t.Error("the object is left")
		}
	})
}
