// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The scenes of docs/ownership.md for external resources. In each the resource "x" is there, and the
// Silo "logs" gets its id, by hand, unless the scene says otherwise. Then it is reconciled, and deleted.
var ownership = []struct {
	name string
	// in are the systems: those that store owners, that store none, and that never change a stored
	// one.
	in string
	// prepare makes the scene, and returns what checks that nothing of others has changed.
	prepare func(d *siloDesk) (check func())
	// want is what becomes of the resource: "adopted" or "refused", and, when the object is deleted,
	// "deleted" or "left".
	want string
	// says is in the condition of a refusal.
	says string
}{
	{"of no object", "stored, ownerless, kept", func(d *siloDesk) func() { theirs(d, ""); return names(d, "x") }, "adopted, deleted", ""},
	{"of a living object", "stored, ownerless, kept", func(d *siloDesk) func() { return living(d, "") }, "refused, left", "belongs to default/giver; choose another name or id"},
	{"of a living object, whose UID is named", "stored, ownerless, kept", func(d *siloDesk) func() {
		check := living(d, "")
		d.annotate("external.ctrlkit.dev/adopt-from", string(giver(d).UID))
		return check
	}, "refused, left", "belongs to default/giver; choose another name or id"},
	{"of a living object that gives it to another one", "stored, ownerless, kept", func(d *siloDesk) func() { return living(d, "a-third") }, "refused, left", "belongs to default/giver"},
	{"given by a living object", "stored, ownerless, kept", func(d *siloDesk) func() { return living(d, string(d.get().UID)) }, "adopted, deleted", ""},
	{"of an object that is not there", "stored, kept", func(d *siloDesk) func() { theirs(d, "gone"); return names(d, "x") }, "refused, left", "external.ctrlkit.dev/adopt-from" + " to gone"},
	{"of an object that is not there, as the remedy says", "stored, kept", func(d *siloDesk) func() {
		theirs(d, "gone")
		d.annotate("external.ctrlkit.dev/adopt-from", "gone")
		return names(d, "x")
	}, "adopted, deleted", ""},
	{"of an object that is not there, and another UID is named", "stored, kept", func(d *siloDesk) func() {
		theirs(d, "gone")
		d.annotate("external.ctrlkit.dev/adopt-from", "other")
		return names(d, "x")
	}, "refused, left", "external.ctrlkit.dev/adopt-from" + " to gone"},
	{"of the same object before it was restored", "stored, ownerless, kept", func(d *siloDesk) func() { return restored(d, "") }, "refused, left", "external.ctrlkit.dev/adopt-from" + " to former"},
	{"of the same object before it was restored, as the remedy says", "stored, ownerless, kept", func(d *siloDesk) func() {
		return restored(d, "former")
	}, "adopted, deleted", ""},
	{"of the object whose manifest was copied", "stored, ownerless, kept", func(d *siloDesk) func() {
		check := living(d, "")
		d.change(func(obj *Silo) { obj.Annotations = giver(d).Annotations })
		return check
	}, "refused, left", "belongs to default/giver"},
	{"of the object whose manifest was copied, with the word for restored ones", "stored, ownerless, kept", func(d *siloDesk) func() {
		check := living(d, "")
		d.change(func(obj *Silo) { obj.Annotations = giver(d).Annotations })
		d.annotate("external.ctrlkit.dev/adopt-from", "former")
		return check
	}, "refused, left", "belongs to default/giver"},
	{"of a living object, whose id takes the place of that of the own resource", "stored, ownerless, kept", func(d *siloDesk) func() {
		d.settle()
		return living(d, "")
	}, "refused, left", "names the resource"},
}

// in has the desk be one of a system that stores owners, of one that stores none, or of one that never
// changes a stored one.
func (d *siloDesk) in(system string) {
	d.t.Helper()
	d.store.ownerless, d.store.keepsOwner = system == "ownerless", system == "kept"
	d.options.StoresOwner = system == "stored"
	d.restart()
}

// theirs puts the resource "x" into the system.
func theirs(d *siloDesk, owner string) {
	d.store.all["x"] = &stored{id: "x", owner: owner, size: "huge"}
}

// names has the Silo name a resource.
func names(d *siloDesk, id string) func() {
	d.annotate(external.IDAnnotation, id)
	return func() {}
}

// giver returns the Silo that owns the resource which is given.
func giver(d *siloDesk) *Silo {
	obj := &Silo{}
	d.must(d.client.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: "giver"}, obj))
	return obj
}

// living has another Silo, and has the first one name the resource of that one. To is to whom it gives
// its resource. Whatever happens, that Silo lives on, and leaves what it has given.
func living(d *siloDesk, to string) (check func()) {
	d.t.Helper()
	obj := d.another("giver")
	reconcile := func() {
		for range 4 {
			_, err := d.reconcileOne(client.ObjectKeyFromObject(obj))
			d.must(err)
		}
	}
	reconcile()
	id := external.IDOf(giver(d))
	if to != "" {
		obj := giver(d)
		obj.Annotations["external.ctrlkit.dev/give-to"] = to
		d.must(d.client.Update(d.t.Context(), obj))
		reconcile()
	}
	names(d, id)
	d.store.all["x"] = d.store.all[id]
	size, owner, given := d.store.all[id].size, d.store.all[id].owner, to == string(d.get().UID)
	return func() {
		d.t.Helper()
		reconcile()
		switch is := d.store.all[id]; {
		case given && is != nil:
			d.t.Errorf("the giver has made it again: %v", is)
		case !given && (is == nil || is.size != size || is.owner != owner):
			d.t.Errorf("the resource of another object is %v", is)
		}
		d.must(d.client.Delete(d.t.Context(), giver(d)))
		_, err := d.reconcileOne(client.ObjectKeyFromObject(obj))
		d.must(err)
		if d.store.all[id] != nil && to == "" {
			d.t.Error("the owner can't delete its resource any more")
		}
	}
}

// restored replaces the Silo, which has a resource, by one with the same manifest.
func restored(d *siloDesk, word string) (check func()) {
	d.t.Helper()
	d.settle()
	before := d.get()
	d.change(func(obj *Silo) { obj.Finalizers = nil }) // as if the cluster were lost
	d.must(d.client.Delete(d.t.Context(), d.get()))
	d.restart()
	after := d.another(siloKey.Name)
	d.change(func(obj *Silo) { obj.Annotations = before.Annotations })
	if word != "" {
		d.annotate("external.ctrlkit.dev/adopt-from", word)
	}
	if after.UID == before.UID {
		d.t.Fatal("the same UID")
	}
	d.store.all["x"] = d.store.all[external.IDOf(before)]
	return func() {}
}

// The table of docs/ownership.md has the scenes, and what becomes of them.
func TestOwnershipIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/ownership.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range ownership {
		claimed, deletion, _ := strings.Cut(tt.want, ", ")
		if row := fmt.Sprintf("\n| %s | %s | %s |\n", tt.name, claimed, deletion); !strings.Contains(string(page), row) {
			t.Errorf("docs/ownership.md has no row %s", row)
		}
	}
}

func TestOwnership(t *testing.T) {
	rings.Test(t, "takes seconds")
	for _, tt := range ownership {
		for _, system := range strings.Split(tt.in, ", ") {
			eachIdentityOf(t, tt.name+", "+system+", ", func(t *testing.T, d *siloDesk) {
				d.in(system)
				check := tt.prepare(d)
				id := external.IDOf(d.get())
				got := "adopted"
				for range 4 {
					_, err := d.reconcile()
					if err == nil {
						continue
					}
					if got = "refused"; !strings.Contains(err.Error(), tt.says) {
						t.Errorf("the error is %q, want %q", err, tt.says)
					}
					if !strings.Contains(tt.says, "names") {
						d.expect("Ready", "False BelongsToAnother")
					}
				}
				if is := d.store.all[id]; got == "adopted" && (is == nil || is.size != "small" || system == "stored" && is.owner != string(d.get().UID)) {
					t.Errorf("what was adopted is %v", is)
				}
				time.Sleep(time.Hour)
				d.delete()
				d.wait()
				if d.get() != nil {
					t.Error("the object stays")
				}
				if d.store.all[id] == nil {
					got += ", deleted"
				} else {
					got += ", left"
				}
				if got != tt.want {
					t.Errorf("the resource is %s, want %s", got, tt.want)
				}
				check()
			})
		}
	}
}

// A resource of a name that clients choose may be another one than that which was created.
func TestReplacedByAStranger(t *testing.T) {
	for _, adopt := range []bool{false, true} {
		onDesk(t, fmt.Sprintf("adopt %t", adopt), byName(), func(t *testing.T, d *siloDesk) {
			d.settle()
			id := external.IDOf(d.get())
			d.store.all[id] = &stored{id: id, size: "huge"}
			d.restart()
			d.fails()
			d.expect("Ready", "False BelongsToAnother: ")
			if d.store.all[id].size != "huge" {
				t.Error("it is changed")
			}
			if adopt {
				d.annotate("external.ctrlkit.dev/adopt-from", "none")
				d.settle()
				d.expect("Ready", "True")
			}
			d.delete()
			d.settle()
			if left := d.store.all[id] != nil; left == adopt || d.get() != nil {
				t.Errorf("it is left: %t", left)
			}
			if events := recorded(d); slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, "ResourceLeft") }) == adopt {
				t.Errorf("events %q", events)
			}
		})
	}
}

// recorded returns the events since it was called last.
func recorded(d *siloDesk) []string {
	var all []string
	for {
		select {
		case e := <-d.recorder.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// The resource stays as long as others have finalizers on the object, but two engines that both want
// to be the last do not wait for each other.
func TestOtherFinalizersComeFirst(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.settle()
		d.change(func(obj *Silo) {
			obj.Finalizers = append(obj.Finalizers, "example.com/backup", "test.example.com/zebra")
		})
		d.delete()
		for range 3 {
			d.passes()
		}
		d.has(1)
		d.expect("Ready", "False ")
		d.change(func(obj *Silo) {
			obj.Annotations["external.ctrlkit.dev/last"] += ",test.example.com/zebra"
			obj.Finalizers = slices.DeleteFunc(obj.Finalizers, func(name string) bool { return name == "example.com/backup" })
		})
		d.passes()
		d.has(0)
	})
}
