// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
)

// To adopt is a right that someone gives who is not the taker.
func TestRightToAdopt(t *testing.T) {
	open := func(d *siloDesk, patterns string) {
		namespace := &corev1.Namespace{}
		d.must(d.client.Get(d.t.Context(), client.ObjectKey{Name: "default"}, namespace))
		metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, "external.ctrlkit.dev/adopt", patterns)
		d.must(d.client.Update(d.t.Context(), namespace))
	}
	for name, tt := range map[string]struct {
		give    func(d *siloDesk)
		adopted bool
		says    string
	}{
		"none":                   {func(*siloDesk) {}, false, `have the owner of the Namespace default add "x" to its annotation external.ctrlkit.dev/adopt`},
		"the namespace":          {func(d *siloDesk) { open(d, "y, x*") }, true, ""},
		"the namespace, for all": {func(d *siloDesk) { open(d, "*") }, true, ""},
		"for another":            {func(d *siloDesk) { open(d, "y,z?") }, false, `add "x"`},
		"namespaces are ignored": {func(d *siloDesk) { open(d, "*"); d.options.Policy.IgnoreNamespaces = true }, false, `have the author of the operator allow that`},
		"the author": {func(d *siloDesk) {
			d.options.Adopt = func(obj *Silo, id string, _ bool) bool { return obj.Name == "logs" && id == "x" }
		}, true, ""},
		"the author reserves it": {func(d *siloDesk) {
			open(d, "*")
			d.options.Adopt = func(_ *Silo, id string, opened bool) bool { return opened && id != "x" }
		}, false, `have the author of the operator allow that`},
		"the system": {func(d *siloDesk) { d.store.seen = func(o *external.Observation) { o.Adoptable = true } }, true, ""},
	} {
		for _, system := range []string{"stored", "ownerless", "kept"} {
			onDesk(t, name+", "+system, byName(), func(t *testing.T, d *siloDesk) {
				d.options.Adopt, d.options.Policy.IgnoreNamespaces = nil, false
				tt.give(d)
				d.in(system)
				theirs(d, "")
				names(d, "x")
				if tt.adopted {
					d.settle()
					d.expect("Ready", "True")
				} else {
					d.fails()
					if ready := d.conditions()["Ready"]; !strings.Contains(ready, tt.says) {
						t.Errorf("Ready is %s", ready)
					}
				}
				if changed := d.store.all["x"].size != "huge"; changed != tt.adopted {
					t.Errorf("it is changed: %t", changed)
				}
				d.delete()
				d.wait()
				if left := d.store.all["x"] != nil; left == tt.adopted {
					t.Errorf("it is left: %t", left)
				}
			})
		}
	}
}

// Adopting stores the owner in a process that knows nothing of the system: another cluster is
// refused then.
func TestAdoptedOnce(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.store.all["x"] = &stored{id: "x", size: "small"}
		names(d, "x")
		d.settle()
		if owner := d.store.all["x"].owner; owner != string(d.get().UID) {
			t.Fatalf("the owner is %q", owner)
		}
		second := newSiloDesk(t, d.options.Identity)
		second.store, second.connector = d.store, d.store
		second.restart()
		other := second.another("of-another-uid")
		metav1.SetMetaDataAnnotation(&other.ObjectMeta, external.IDAnnotation, "x")
		second.must(second.client.Update(t.Context(), other))
		if _, err := second.reconcileOne(client.ObjectKeyFromObject(other)); err == nil || !strings.Contains(err.Error(), "not ours") {
			t.Errorf("the second cluster: %v", err)
		}
		second.must(second.client.Delete(t.Context(), other))
		_, _ = second.reconcileOne(client.ObjectKeyFromObject(other))
		d.has(1)
	})
}

// A resource that the system does not show yet is not leaked by the deletion of its object.
func TestDeletedWithinTheLag(t *testing.T) {
	for _, system := range []string{"stored", "ownerless"} {
		onDesk(t, system, byName(), func(t *testing.T, d *siloDesk) {
			d.in(system)
			d.store.lag = 30 * time.Second
			d.passes()
			d.restart()
			d.delete()
			d.wait()
			d.gone()
		})
	}
}

// A time to come is one of now: a clock was wrong, or a person has written it.
func TestTimesToCome(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.settle()
		clear(d.store.all)
		words := strings.Fields(d.get().Annotations[external.IntentAnnotation])
		words[1] = "2098-11-22T10:00:00Z"
		d.annotate(external.IntentAnnotation, strings.Join(words, " "))
		d.restart()
		d.passesTimes(30)
		d.has(1)
		d.expect("Ready", "True")
		d.delete()
		d.wait()
		d.gone()
	})
}

// An edited id is refused, and says which resource the object has. The deletion leaves what it
// names, and not the own one.
func TestEditedID(t *testing.T) {
	for _, system := range []string{"stored", "ownerless", "kept"} {
		for _, restarted := range []bool{false, true} {
			eachIdentityOf(t, fmt.Sprintf("%s, restarted %t, ", system, restarted), func(t *testing.T, d *siloDesk) {
				d.in(system)
				d.settle()
				own := external.IDOf(d.get())
				d.annotate(external.IDAnnotation, "typo")
				if restarted {
					d.restart()
				}
				d.fails()
				d.has(1)
				d.expect("Ready", "False WrongAnnotation")
				if system != "stored" || !restarted {
					if ready := d.conditions()["Ready"]; !strings.Contains(ready, own) {
						t.Errorf("Ready does not name %s: %s", own, ready)
					}
				}
				d.annotate(external.IDAnnotation, own) // as the remedy says
				d.settle()
				d.expect("Ready", "True")
				d.store.all["theirs"] = &stored{id: "theirs", size: "huge"}
				d.annotate(external.IDAnnotation, "theirs")
				if restarted {
					d.restart()
				}
				d.delete()
				d.wait()
				left := slices.ContainsFunc(recorded(d), func(e string) bool {
					return strings.Contains(e, "ResourceLeft") && strings.Contains(e, "theirs") && strings.Contains(e, "had another one")
				})
				if own := d.store.all[own] != nil; d.store.all["theirs"] == nil || own && !left {
					t.Errorf("the store has %v, and no event names what was left", d.store.ids())
				}
			})
		}
	}
}

// Objects of a former version of this package have nothing but their annotations. They get claims,
// once, and what is recorded by two is left to a person. From then on no annotation counts.
func TestRecordsBecomeClaims(t *testing.T) {
	eachIdentityOf(t, "", func(t *testing.T, d *siloDesk) {
		d.in("ownerless")
		record := func(obj *Silo, id string) {
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, external.IDAnnotation, id)
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, external.IntentAnnotation, "created 2026-11-22T10:00:00Z for "+string(obj.UID))
			obj.Finalizers = []string{siloFinalizer}
			d.must(d.client.Update(t.Context(), obj))
			d.store.all[id] = &stored{id: id, size: "small"}
		}
		record(d.get(), "old")
		record(d.another("one"), "contested")
		record(d.another("two"), "contested")
		h := &hostile{siloDesk: d}
		d.options.Adopt = nil
		d.restart()
		h.reconciles("logs", 2)
		d.expect("Ready", "True")
		for _, name := range []string{"one", "two"} {
			h.reconciles(name, 2)
			if ready := readyOf(h.silo(name)); !strings.HasPrefix(ready, "False BelongsToAnother") {
				t.Errorf("%s is %s", name, ready)
			}
		}
		late := d.another("late")
		record(late, "strange")
		d.restart()
		h.reconciles("late", 2)
		if ready := readyOf(h.silo("late")); !strings.HasPrefix(ready, "False BelongsToAnother") {
			t.Errorf("a record that was written after the claims were made: %s", ready)
		}
		for _, name := range []string{"logs", "one", "two", "late"} {
			d.must(d.client.Delete(t.Context(), h.silo(name)))
			h.reconciles(name, 3)
		}
		if ids := d.store.ids(); !slices.Equal(ids, []string{"contested", "strange"}) {
			t.Errorf("the store has %v", ids)
		}
		if all := claims(d); len(all) != 0 {
			t.Errorf("claims of what is gone: %v", all)
		}
	})
}

// claims returns the holders of all claims.
func claims(d *siloDesk) []string {
	d.t.Helper()
	list := &coordinationv1.LeaseList{}
	d.must(d.client.List(d.t.Context(), list))
	var all []string
	for _, l := range list.Items {
		if strings.HasPrefix(l.Name, "external-") && !strings.HasPrefix(l.Name, "external-claims-") {
			all = append(all, *l.Spec.HolderIdentity)
		}
	}
	return all
}

// Lost claims stop what they protect, and destroy nothing. Who deletes the mark of their
// completeness has them made once more.
func TestLostClaims(t *testing.T) {
	eachIdentityOf(t, "", func(t *testing.T, d *siloDesk) {
		d.in("ownerless")
		d.options.Adopt = nil
		d.restart()
		d.settle()
		drop := func(prefix string) {
			list := &coordinationv1.LeaseList{}
			d.must(d.client.List(t.Context(), list))
			for i := range list.Items {
				if strings.HasPrefix(list.Items[i].Name, prefix) {
					d.must(d.client.Delete(t.Context(), &list.Items[i]))
				}
			}
		}
		drop("external-")
		d.must(d.client.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "unrelated"}}))
		d.restart()
		d.settle()
		d.expect("Ready", "True")
		if all := claims(d); len(all) != 1 {
			t.Errorf("claims %v", all)
		}
	})
}
