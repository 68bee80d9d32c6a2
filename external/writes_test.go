// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

// A counting client notes the writes to the Silo, in the order of the calls of the store.
type counting struct {
	client.Client
	store *store
}

func (c counting) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.store.calls = append(c.store.calls, "METADATA")
	return c.Client.Patch(ctx, obj, patch, options...)
}

// noteClaim notes the write of a claim, and not what users do.
func (c counting) noteClaim(obj client.Object, what string) {
	if obj.GetObjectKind().GroupVersionKind().Kind == "Lease" {
		c.store.calls = append(c.store.calls, what)
	}
}

func (c counting) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	c.noteClaim(obj, "CLAIM")
	return c.Client.Create(ctx, obj, options...)
}

func (c counting) Update(ctx context.Context, obj client.Object, options ...client.UpdateOption) error {
	c.noteClaim(obj, "ENDING")
	return c.Client.Update(ctx, obj, options...)
}

func (c counting) Delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) error {
	c.noteClaim(obj, "END")
	return c.Client.Delete(ctx, obj, options...)
}

func (c counting) SubResource(name string) client.SubResourceClient {
	return countingStatus{c.Client.SubResource(name), c.store}
}

type countingStatus struct {
	client.SubResourceClient
	store *store
}

func (c countingStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	c.store.calls = append(c.store.calls, "STATUS")
	return c.SubResourceClient.Patch(ctx, obj, patch, options...)
}

// siloFinalizer is what an admission policy adds.
const siloFinalizer = "test.example.com/silos"

// The life of one resource, and what it costs: writes to the API server, in capitals, and calls.
// The reconcile which the last write triggers does not observe the resource again.
func TestRequestsOfALife(t *testing.T) {
	for name, tt := range map[string]struct{ without, with string }{
		"name":    {"observe METADATA create observe STATUS", "observe METADATA create observe STATUS"},
		"token":   {"METADATA create METADATA observe STATUS", "create METADATA observe STATUS"},
		"tag":     {"find METADATA create METADATA observe STATUS", "find METADATA create METADATA observe STATUS"},
		"nothing": {"METADATA create METADATA observe STATUS", "METADATA create METADATA observe STATUS"},
	} {
		for admission, want := range map[string]string{"without an admission policy": tt.without, "with one": tt.with} {
			onDesk(t, name+" "+admission, siloIdentities[name], func(t *testing.T, d *siloDesk) {
				d.client, d.skipUnchanged = counting{d.client, d.store}, true
				d.restart()
				if admission == "with one" {
					d.change(func(obj *Silo) { obj.Finalizers = []string{siloFinalizer} })
				}
				d.settle()
				d.expect("Ready", "True")
				d.expect("Available", "True Available")
				d.takes("until Ready", want)
				id := external.IDOf(d.get())
				if !slices.Equal(d.store.ids(), []string{id}) {
					t.Errorf("the id %q is recorded, and the store has %v", id, d.store.ids())
				}
				time.Sleep(time.Hour)
				d.settle()
				d.takes("a poll", "observe")
				d.store.all[id].size = "edited"
				time.Sleep(time.Hour)
				d.settle()
				d.takes("drift", "observe update observe")
				if got := d.store.all[id].size; got != "small" {
					t.Errorf("the size is %s", got)
				}
				delete(d.store.all, id)
				time.Sleep(time.Hour) // it is not recent any more
				d.settle()
				d.has(1) // it is created again
				d.store.take()
				d.delete()
				d.settle()
				d.takes("deletion", "observe delete observe METADATA")
				d.gone()
			})
		}
	}
}

// A claim costs one write for a creation, two for a deletion, and none in between, also after a
// restart.
func TestRequestsOfClaims(t *testing.T) {
	for name, want := range map[string]string{
		"name":    "observe METADATA CLAIM create observe STATUS",
		"token":   "METADATA create CLAIM METADATA observe STATUS",
		"tag":     "find METADATA create CLAIM METADATA observe STATUS",
		"nothing": "METADATA create CLAIM METADATA observe STATUS",
	} {
		onDesk(t, name, siloIdentities[name], func(t *testing.T, d *siloDesk) {
			d.in("ownerless")
			d.must(d.client.Delete(t.Context(), d.another("first")))
			d.passes() // the claims are read, and marked as complete
			d.delete()
			d.wait()
			d.another(siloKey.Name)
			api := d.client
			d.client, d.skipUnchanged = counting{api, d.store}, true
			d.restart()
			d.store.take()
			d.settle()
			d.takes("until Ready", want)
			for _, again := range []func(){func() {}, d.restart} {
				again()
				time.Sleep(time.Hour)
				d.settle()
				d.takes("a poll", "observe")
			}
			d.delete()
			d.settle()
			d.takes("deletion", "observe ENDING delete observe END METADATA")
			d.gone()
		})
	}
}

// What the operator has observed after a creation or an update holds for the reconcile that its own
// writes trigger, and for no other one.
func TestObservedOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		between   func(d *siloDesk)
		want      string
		always    bool // the engine does not skip unchanged objects
		publishes bool
	}{
		"a connection Secret": {publishes: true, want: ""},
		"a stranger's edit of it": {publishes: true, want: "observe", between: func(d *siloDesk) {
			secret := d.secret()
			secret.Data["password"] = []byte("theirs")
			d.must(d.client.Update(t.Context(), secret))
		}},
		"nothing else":     {want: ""},
		"another process":  {between: func(d *siloDesk) { d.restart() }, want: "observe"},
		"no SkipUnchanged": {always: true, want: "observe"},
		"a late queue":     {between: func(*siloDesk) { time.Sleep(10 * time.Second) }, want: "observe"},
		"a user's label": {
			between: func(d *siloDesk) { d.change(func(obj *Silo) { obj.Labels = map[string]string{"a": "b"} }) }, want: "observe",
		},
		"a new size": {
			between: func(d *siloDesk) { d.change(func(obj *Silo) { obj.Spec.Size = "large" }) }, want: "observe update observe",
		},
		"a drift": {between: func(d *siloDesk) { d.store.all[external.IDOf(d.get())].size = "edited" }, want: ""}, // found by the next poll
	} {
		onDesk(t, name, byName(), func(t *testing.T, d *siloDesk) {
			d.skipUnchanged = !tt.always
			if d.restart(); tt.publishes {
				d.publishing()
			}
			d.passes()
			d.expect("Ready", "True")
			d.takes("creation", "observe create observe")
			if tt.between != nil {
				tt.between(d)
			}
			poll := d.passes().RequeueAfter
			d.takes("the next reconcile", tt.want)
			d.settle()
			d.store.take()
			id := external.IDOf(d.get())
			d.store.all[id].size = "edited"
			time.Sleep(poll)
			d.settle()
			d.takes("a poll", "observe update observe")
			delete(d.store.all, id)
			time.Sleep(2 * time.Minute)
			d.settle()
			d.has(1) // it is created again
		})
	}
}

func (d *siloDesk) takes(when, want string) {
	d.t.Helper()
	got := d.store.take()
	if got != want {
		d.t.Errorf("%s: %s, want %s", when, got, want)
	}
	if writes := strings.Count(got, "METADATA") + strings.Count(got, "STATUS"); writes > 3 {
		d.t.Errorf("%s: %d writes", when, writes)
	}
}

// A token that was never written is found by the finalizer alone.
func TestUnwrittenTokenIsDeleted(t *testing.T) {
	inDesk(t, external.ByToken[*Silo](), func(t *testing.T, d *siloDesk) {
		d.change(func(obj *Silo) { obj.Finalizers = []string{siloFinalizer} })
		d.failAfterCreate()
		d.restart() // the process knows nothing
		d.delete()
		d.wait()
		d.gone()
	})
}

// wait reconciles until the Silo is gone, or a while has passed.
func (d *siloDesk) wait() {
	d.t.Helper()
	for range 60 {
		if d.get() == nil {
			return
		}
		result := d.passes()
		time.Sleep(max(result.RequeueAfter, time.Second))
	}
}

// Another client removes the annotations, and the process ends before it has written them again.
func TestStrippedAnnotationsAfterARestart(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.settle()
		d.change(func(obj *Silo) { obj.Annotations = nil })
		d.restart()
		d.delete()
		if strings.HasSuffix(t.Name(), "/nothing") {
			if _, err := d.reconcile(); err == nil || d.get() == nil {
				t.Fatalf("nothing shows whether there is a resource: %v", err)
			}
			d.expect("Ready", "False CreationUnknown")
			d.annotate(external.IDAnnotation, d.store.ids()[0]) // as the condition says
		}
		d.wait()
		d.gone()
	})
}

// The managed fields do not show a claim if another step cleans up: what the system knows by a name
// or a tag, with its owner, is deleted all the same, and nothing else.
func TestStrippedAnnotationsBesideAnotherCleanup(t *testing.T) {
	for _, class := range []string{"name", "tag"} {
		onDesk(t, class, siloIdentities[class], func(t *testing.T, d *siloDesk) {
			done := func(context.Context, *step.Request[*Silo]) error { return nil }
			d.other = step.Step[*Silo]{Name: "Other", Do: done, Cleanup: done}
			d.restart()
			d.settle()
			d.change(func(obj *Silo) { obj.Annotations = nil })
			d.restart()
			d.delete()
			d.wait()
			d.gone()
		})
	}
	onDesk(t, "of another object", byName(), func(t *testing.T, d *siloDesk) {
		d.settle()
		d.store.all[d.store.ids()[0]].owner = "another"
		d.change(func(obj *Silo) { obj.Annotations, obj.ManagedFields = nil, []metav1.ManagedFieldsEntry{{}} })
		d.restart()
		d.delete()
		d.wait()
		d.has(1)
	})
}

// The right twin: an object that has its finalizer from an admission policy, and was never
// claimed, needs no system to be deleted. Where the token is not written, the system is needed.
func TestNeverClaimedNeedsNoSystem(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.change(func(obj *Silo) { obj.Finalizers = []string{siloFinalizer} })
		d.store.fail = func(string) error { return errors.New("no credentials") }
		_, _ = d.reconcile()
		d.restart()
		d.delete()
		_, err := d.reconcile()
		if byToken := strings.HasSuffix(t.Name(), "/token"); (err == nil) == byToken || (d.get() == nil) == byToken {
			t.Errorf("the object is there: %t, error %v", d.get() != nil, err)
		}
	})
}

// A finalizer that a person has removed is a decision: the resource is left.
func TestRemovedFinalizerIsADecision(t *testing.T) {
	eachIdentity(t, func(t *testing.T, d *siloDesk) {
		d.settle()
		d.change(func(obj *Silo) { obj.Annotations, obj.Finalizers = nil, nil })
		d.store.take()
		d.delete()
		d.passes()
		if calls := d.store.take(); strings.Contains(calls, "delete") || len(d.store.all) != 1 {
			t.Errorf("calls %s", calls)
		}
	})
}

// A system that remembers tokens answers that of a resource which was deleted by hand with its
// former id. The next one is used then, which is found again without annotations.
func TestTokensOfDeletedResources(t *testing.T) {
	inDesk(t, external.ByToken[*Silo](), func(t *testing.T, d *siloDesk) {
		d.store.tokens = map[string]string{}
		d.settle()
		for n := range 2 {
			delete(d.store.all, external.IDOf(d.get()))
			time.Sleep(time.Hour)
			d.settle()
			if len(d.store.all) != 1 || !strings.Contains(d.get().Annotations[external.IntentAnnotation], "-"+string(rune('2'+n))+" for ") {
				t.Fatalf("after deletion %d the store has %v, and the annotation is %q", n+1, d.store.ids(), d.get().Annotations[external.IntentAnnotation])
			}
		}
		d.change(func(obj *Silo) { obj.Annotations = nil })
		d.restart()
		d.passesTimes(40)
		d.expect("Ready", "True")
		d.has(1)
	})
}

// The reads of a system lag more than Options.Visible says. Without a sighting, a resource does not
// count as deleted: there are few duplicates, each is waited for longer, and an event says so.
func TestReadsThatLagMore(t *testing.T) {
	rings.Test(t, "takes a second")
	for lag, most := range map[time.Duration]int{30 * time.Second: 1, 5 * time.Minute: 4} {
		for _, class := range []string{"token", "tag", "nothing"} {
			onDesk(t, class+" "+lag.String(), siloIdentities[class], func(t *testing.T, d *siloDesk) {
				d.store.lag = lag
				if class == "token" {
					d.store.tokens = map[string]string{}
				}
				for range 100 {
					result, _ := d.reconcile()
					time.Sleep(max(result.RequeueAfter, 5*time.Second))
				}
				if made := len(d.store.all); made > most {
					t.Errorf("%d resources", made)
				}
				if warned := slices.ContainsFunc(recorded(d), func(e string) bool { return strings.Contains(e, "NeverSeen") }); warned != (len(d.store.all) > 2) {
					t.Errorf("%d resources, warned %t", len(d.store.all), warned)
				}
			})
		}
	}
}
