// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A hostile test has a Silo "victim" with a resource, and the Silo "logs", whose owner may write what
// users may write: its metadata and its spec.
type hostile struct {
	*siloDesk
	id    string // of the resource of the victim
	owner string // that the system shows
}

// againstAll runs a test in each system, with each identity. Nothing may be adopted unless the test says so.
func againstAll(t *testing.T, test func(t *testing.T, h *hostile)) {
	t.Helper()
	for _, system := range []string{"stored", "ownerless", "kept"} {
		eachIdentityOf(t, system+", ", func(t *testing.T, d *siloDesk) {
			d.options.Adopt = nil
			d.in(system)
			d.another("victim")
			h := &hostile{siloDesk: d}
			h.others(3)
			victim := h.silo("victim")
			h.id = external.IDOf(victim)
			h.owner = d.store.all[h.id].owner
			test(t, h)
			h.untouched()
		})
	}
}

// silo returns a Silo, nil if it is gone.
func (h *hostile) silo(name string) *Silo {
	h.t.Helper()
	obj := &Silo{}
	err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	h.must(err)
	return obj
}

// others reconciles the victim so many times.
func (h *hostile) others(times int) { h.reconciles("victim", times) }

// reconciles reconciles a Silo so many times, whatever becomes of it.
func (h *hostile) reconciles(name string, times int) {
	h.t.Helper()
	for range times {
		result, _ := h.reconcileOne(client.ObjectKey{Namespace: "default", Name: name})
		time.Sleep(max(result.RequeueAfter, time.Second))
	}
}

// writes has a user write the metadata of the Silo "logs": keys with a value of "-" are removed.
func (h *hostile) annotates(pairs ...string) {
	h.t.Helper()
	h.change(func(obj *Silo) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "-" {
				delete(obj.Annotations, pairs[i])
				continue
			}
			metav1.SetMetaDataAnnotation(&obj.ObjectMeta, pairs[i], pairs[i+1])
		}
	})
}

// untouched checks that the victim has its resource as it was, and can delete it.
func (h *hostile) untouched() {
	h.t.Helper()
	h.others(2)
	is := h.store.all[h.id]
	if is == nil || is.size != "small" || is.owner != h.owner {
		h.t.Fatalf("the resource of the victim is %+v", is)
	}
	if ready := readyOf(h.silo("victim")); !strings.HasPrefix(ready, "True") {
		h.t.Errorf("the victim is %s", ready)
	}
	h.must(h.client.Delete(h.t.Context(), h.silo("victim")))
	h.others(3)
	if h.store.all[h.id] != nil || h.silo("victim") != nil {
		h.t.Error("the victim can't be deleted with its resource")
	}
}

func readyOf(obj *Silo) string {
	for _, c := range obj.Status.Conditions {
		if c.Type == "Ready" {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// Whatever the owner of one object writes into it, in whatever order the operator is restarted, and whether
// the object is deleted before it was reconciled: the resource of another one is not touched.
func TestTakesNothing(t *testing.T) {
	rings.Test(t, "takes seconds")
	forged := func(h *hostile, more string) string {
		return "created 2026-11-22T10:00:00Z for " + string(h.get().UID) + more
	}
	attacks := map[string]func(h *hostile){
		"names it":      func(h *hostile) { h.annotates(external.IDAnnotation, h.id) },
		"forged record": func(h *hostile) { h.annotates(external.IDAnnotation, h.id, external.IntentAnnotation, forged(h, "")) },
		"forged adoption": func(h *hostile) {
			h.annotates(external.IDAnnotation, h.id, external.IntentAnnotation, forged(h, " from "+string(h.silo("victim").UID)))
		},
		"forged creation": func(h *hostile) {
			h.annotates(external.IDAnnotation, h.id, external.IntentAnnotation, "begun 2026-11-22T10:00:00Z by another for "+string(h.get().UID))
		},
		"copied annotations": func(h *hostile) { h.change(func(obj *Silo) { obj.Annotations = h.silo("victim").Annotations }) },
		"copied, former": func(h *hostile) {
			h.change(func(obj *Silo) { obj.Annotations = h.silo("victim").Annotations })
			h.annotates("external.ctrlkit.dev/adopt-from", "former")
		},
		"the word of its UID": func(h *hostile) {
			h.annotates(external.IDAnnotation, h.id, "external.ctrlkit.dev/adopt-from", string(h.silo("victim").UID))
		},
		"the word for no owner": func(h *hostile) {
			h.annotates(external.IDAnnotation, h.id, "external.ctrlkit.dev/adopt-from", "none")
		},
		"gives it away":     func(h *hostile) { h.annotates(external.IDAnnotation, h.id, "external.ctrlkit.dev/give-to", "another") },
		"only observes":     func(h *hostile) { h.annotates(external.IDAnnotation, h.id, policy.AllowAnnotation, "observe") },
		"observes, deletes": func(h *hostile) { h.annotates(external.IDAnnotation, h.id, policy.AllowAnnotation, "observe,delete") },
		"an edited id": func(h *hostile) {
			h.reconciles("logs", 3)
			h.annotates(external.IDAnnotation, h.id, external.IntentAnnotation, "-")
		},
		"the token of it": func(h *hostile) {
			h.annotates(external.IntentAnnotation, "begun 2026-11-22T10:00:00Z by another token "+string(h.silo("victim").UID)+"-1 for "+string(h.get().UID))
		},
	}
	for name, attack := range attacks {
		for _, how := range []string{"", ", restarted", ", deleted at once"} {
			t.Run(name+how, func(t *testing.T) {
				againstAll(t, func(t *testing.T, h *hostile) {
					h.publishing()
					h.change(func(obj *Silo) { obj.Spec.Size = "stolen" })
					attack(h)
					if how != "" {
						h.restart()
					}
					if how == ", deleted at once" {
						h.change(func(obj *Silo) { obj.Finalizers = append(obj.Finalizers, siloFinalizer) })
						h.change(func(obj *Silo) { obj.Finalizers = slices.Compact(obj.Finalizers) })
						h.delete()
					}
					h.reconciles("logs", 4)
					if s := h.secret(); s != nil && strings.Contains(string(s.Data["address"]), h.id) {
						t.Error("its connection details are published")
					}
					if h.get() != nil {
						h.delete()
						h.reconciles("logs", 40)
					}
				})
			})
		}
	}
}

// Two objects name the same resource, which does not exist: the second one is refused while the creation of
// the first is under way, and if the system shows nothing for half a minute.
func TestTwoOfOneName(t *testing.T) {
	shared := external.ByName(func(*Silo) (string, error) { return "shared", nil })
	for _, system := range []string{"stored", "ownerless", "kept"} {
		for _, how := range []string{"two workers", "reads that lag"} {
			onDesk(t, system+", "+how, shared, func(t *testing.T, d *siloDesk) {
				d.in(system)
				d.another("two")
				h := &hostile{siloDesk: d}
				if how == "reads that lag" {
					d.store.lag = 30 * time.Second
					h.reconciles("logs", 1)
					h.reconciles("two", 1)
				} else {
					n := 0
					d.store.fail = func(method string) error {
						if n++; method == "create" && n < 5 {
							n = 5
							_, _ = d.engine.Reconcile(context.WithoutCancel(t.Context()), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "two"}})
						}
						return nil
					}
					_, _ = d.engine.Reconcile(context.WithoutCancel(t.Context()), ctrl.Request{NamespacedName: siloKey})
					d.store.fail = nil
				}
				for range 20 {
					h.reconciles("logs", 1)
					h.reconciles("two", 1)
				}
				ready := []string{readyOf(d.get()), readyOf(h.silo("two"))}
				if slices.Sort(ready); !strings.HasPrefix(ready[0], "False BelongsToAnother") || !strings.HasPrefix(ready[1], "True") {
					t.Fatalf("the objects are %q", ready)
				}
				loser := "two"
				if strings.HasPrefix(readyOf(d.get()), "False") {
					loser = "logs"
				}
				d.restart()
				d.must(d.client.Delete(t.Context(), h.silo(loser)))
				h.reconciles(loser, 10)
				if d.has(1); h.silo(loser) != nil {
					t.Error("it can't be deleted")
				}
			})
		}
	}
}

// To give takes effect when it is taken: until then the giver takes it back by removing the annotation, and
// after that it has nothing to take back, and writes nothing, in whichever process it was taken.
func TestGivenIsGiven(t *testing.T) {
	for _, process := range []string{"not taken", "the same", "restarted", "another"} {
		againstAll(t, func(t *testing.T, h *hostile) {
			h.change(func(obj *Silo) { obj.Spec.Size = "small" })
			h.victimChanges(func(giver *Silo) {
				metav1.SetMetaDataAnnotation(&giver.ObjectMeta, "external.ctrlkit.dev/give-to", string(h.get().UID))
			})
			h.annotates(external.IDAnnotation, h.id)
			first := h.engine
			if process == "another" {
				h.restart()
			} else {
				h.others(2)
			}
			if process != "not taken" {
				h.reconciles("logs", 1)
				h.others(1) // while the taker has not stored that it is the owner
				h.reconciles("logs", 3)
				h.expect("Ready", "True")
			}
			taken := *h.store.all[h.id]
			h.victimChanges(func(giver *Silo) { delete(giver.Annotations, "external.ctrlkit.dev/give-to") })
			switch process {
			case "restarted", "not taken":
				h.restart()
			case "another":
				h.engine = first
			}
			if process != "not taken" {
				h.victimChanges(func(giver *Silo) { giver.Spec.Size = "huge" })
			}
			h.others(3)
			if now := *h.store.all[h.id]; now.size != taken.size || now.owner != taken.owner {
				t.Fatalf("process %s: what was %+v is %+v", process, taken, now)
			}
			if h.reconciles("logs", 3); process == "not taken" {
				h.expect("Ready", "False BelongsToAnother")
				return // and the victim has it as before
			}
			h.takenForGood()
		})
	}
}

// victimChanges has the owner of the victim change it.
func (h *hostile) victimChanges(change func(obj *Silo)) {
	h.t.Helper()
	obj := h.silo("victim")
	change(obj)
	h.must(h.client.Update(h.t.Context(), obj))
}

// takenForGood checks that "logs" has taken the resource of the victim.
func (h *hostile) takenForGood() {
	h.t.Helper()
	h.must(h.client.Delete(h.t.Context(), h.silo("victim")))
	h.others(3)
	if h.store.all[h.id] == nil {
		h.t.Fatal("the deletion of the giver has deleted the resource of the taker")
	}
	h.reconciles("logs", 2)
	h.expect("Ready", "True")
	h.delete()
	h.reconciles("logs", 3)
	if h.store.all[h.id] != nil || h.get() != nil {
		h.t.Error("the taker can't delete it")
	}
	*h = hostile{siloDesk: h.siloDesk, id: "later"} // a victim for what is checked in the end
	h.another("victim")
	h.others(3)
	h.id = external.IDOf(h.silo("victim"))
	h.owner = h.store.all[h.id].owner
}

// What an operator can't see is not gone: an object of another namespace, shard or kind.
func TestUnseenOwners(t *testing.T) {
	for _, system := range []string{"stored", "ownerless", "kept"} {
		for _, sight := range []string{"cache of a namespace", "role for a namespace"} {
			eachIdentityOf(t, system+", "+sight+", ", func(t *testing.T, d *siloDesk) {
				d.in(system)
				h := &hostile{siloDesk: d}
				d.must(d.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}))
				owner := &Silo{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "precious"}, Spec: SiloSpec{Size: "huge", Region: "north"}}
				d.must(d.client.Create(t.Context(), owner))
				for range 3 {
					_, err := d.reconcileOne(client.ObjectKeyFromObject(owner))
					d.must(err)
				}
				d.must(d.client.Get(t.Context(), client.ObjectKeyFromObject(owner), owner))
				id := external.IDOf(owner)
				live := client.Reader(d.client)
				if sight == "role for a namespace" {
					live = namespaced{d.client, true}
				}
				e, err := step.New(step.Options[*Silo]{Name: "silos", Client: namespaced{d.client, false}, APIReader: live, Recorder: d.recorder}, external.New("Silo", d.connector, d.options))
				d.must(err)
				d.engine = e
				h.annotates(external.IDAnnotation, id, "external.ctrlkit.dev/adopt-from", string(owner.UID))
				h.reconciles("logs", 3)
				if ready := readyOf(d.get()); !strings.HasPrefix(ready, "False") {
					t.Errorf("it is %s", ready)
				}
				d.delete()
				h.reconciles("logs", 3)
				if is := d.store.all[id]; is == nil || is.size != "huge" || d.get() != nil {
					t.Errorf("the resource of a living object is %+v, and the object is there: %t", is, d.get() != nil)
				}
			})
		}
	}
	onDesk(t, "another kind", byName(), func(t *testing.T, d *siloDesk) {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner-of-x"}}
		d.must(d.client.Create(t.Context(), other))
		theirs(d, string(other.UID))
		d.options.SharedWith = []client.Object{&corev1.ConfigMap{}}
		d.restart()
		names(d, "x")
		d.annotate("external.ctrlkit.dev/adopt-from", string(other.UID))
		d.fails()
		d.expect("Ready", "False BelongsToAnother: Silo: the resource \"x\" is not ours: it belongs to default/owner-of-x")
	})
}

// A namespaced client sees the namespace "default". Strict refuses to read others.
type namespaced struct {
	client.Client
	strict bool
}

func (c namespaced) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(options)
	if o.Namespace == "" && c.strict {
		return apierrors.NewForbidden(schema.GroupResource{Group: "test.example.com", Resource: "silos"}, "", errors.New("not in all namespaces"))
	}
	return c.Client.List(ctx, list, append(options, client.InNamespace("default"))...)
}

func (c namespaced) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if c.strict && key.Namespace != "default" && key.Namespace != "" {
		return apierrors.NewForbidden(schema.GroupResource{Group: "test.example.com", Resource: "silos"}, key.Name, errors.New("not in this namespace"))
	}
	return c.Client.Get(ctx, key, obj, options...)
}
