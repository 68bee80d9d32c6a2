// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

func TestAwait(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	v.create(of)
	v.expect(of, "YardReady", "False YardNotFound: Yard default/a does not exist: create it")
	v.expect(of, "Available", "False YardNotFound: Yard default/a does not exist: create it")
	v.broken["a"] = true
	v.create(in)
	v.reconcile(of)
	v.expect(of, "YardReady", "False YardNotReady: waiting for Yard default/a to be ready: its condition Ready is False: Unavailable: Available: the gate is locked")
	if len(of.Finalizers) > 0 || v.uses(of) != "" {
		t.Errorf("a Barn that waits has finalizers %v and uses %q", of.Finalizers, v.uses(of))
	}
	v.broken["a"] = false
	v.reconcile(in)
	v.writes = 0
	v.reconcile(of)
	v.expect(of, "Ready", "True")
	v.expect(of, "YardReady", "True YardReady")
	if v.uses(of) != "a" || v.stands["b"] != "a" || v.writes != 1 {
		t.Errorf("the Barn stands in %q and uses %q, after %d writes of its metadata", v.stands["b"], v.uses(of), v.writes)
	}
	v.broken["a"] = true // what is in use need not be ready
	v.reconcile(in, of)
	v.expect(of, "Ready", "True")
}

func TestProtect(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	v.create(in, of)
	v.expect(in, "InUse", "False NotDeleted")
	v.delete(in)
	v.expect(in, "InUse", "True Used: it is deleted after Barn default/b")
	v.expect(in, "Reconciling", "True CleaningUp: cleaning up: waits for Barn default/b to be deleted")
	v.reconcile(of)
	v.expect(of, "Ready", "True") // it is not disturbed
	v.delete(of)
	v.reconcile(in)
	if v.exists(of) || v.exists(in) || len(v.stands) > 0 {
		t.Errorf("there is still %v", v.stands)
	}
}

// Nothing waits for users that there are not.
func TestUnusedIsDeletedAtOnce(t *testing.T) {
	t.Run("nothing refers to it", func(t *testing.T) {
		v := newVillage(t)
		in := yard("a")
		v.create(in, yard("other"), barn("b", BarnSpec{Yard: "other"}))
		v.must(v.client.Delete(t.Context(), in))
		v.must(v.once(in))
		if v.exists(in) {
			t.Error("it is not gone after one reconcile")
		}
	})
	t.Run("the user is gone", func(t *testing.T) {
		v := newVillage(t)
		in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
		v.create(in, of)
		v.delete(of, in)
		if v.exists(in) {
			t.Error("it is still there")
		}
	})
	t.Run("the user waits", func(t *testing.T) {
		v := newVillage(t)
		in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
		v.broken["a"] = true
		v.create(in, of)
		v.delete(in)
		if v.exists(in) {
			t.Error("it is still there")
		}
	})
	t.Run("another one of its name was used", func(t *testing.T) {
		v := newVillage(t)
		in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
		v.create(in, of)
		v.must(v.client.Get(t.Context(), client.ObjectKeyFromObject(in), in))
		in.Finalizers = nil
		v.must(v.client.Update(t.Context(), in))
		v.must(v.client.Delete(t.Context(), in)) // by force
		v.broken["a"] = true
		in = yard("a")
		v.create(in)
		v.reconcile(of)
		v.expect(of, "YardReady", "False YardNotReady")
		delete(v.stands, "b")
		v.delete(in)
		if v.exists(in) {
			t.Error("it is still there")
		}
	})
}

// Both are deleted, in either order, as with their namespace.
func TestBothAreDeleted(t *testing.T) {
	for name, order := range map[string]func(in *Yard, of *Barn) []client.Object{
		"the user first": func(in *Yard, of *Barn) []client.Object { return []client.Object{of, in} },
		"the user last":  func(in *Yard, of *Barn) []client.Object { return []client.Object{in, of} },
	} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
			v.create(in, of)
			for _, obj := range order(in, of) {
				v.must(v.client.Delete(t.Context(), obj))
			}
			v.reconcile(in, of, in)
			if v.exists(in) || v.exists(of) || len(v.stands) > 0 {
				t.Errorf("there is still %v", v.stands)
			}
		})
	}
}

// Protect works without another step that has something to clean up.
func TestProtectAlone(t *testing.T) {
	check := step.Step[*Yard]{Name: "Check", Do: func(context.Context, *step.Request[*Yard]) error { return nil }}
	for name, before := range map[string][]step.Step[*Yard]{"alone": nil, "after another step": {check}} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			var err error
			v.yards, err = step.New(step.Options[*Yard]{Name: "yards", Client: counting{v.client, v}, APIReader: v.client},
				append(before, reference.Protect(v.yardOf))...)
			v.must(err)
			in, of, unused := yard("a"), barn("b", BarnSpec{Yard: "a"}), yard("unused")
			v.create(in, of, unused)
			v.writes = 0
			v.reconcile(in)
			if v.writes > 0 {
				t.Errorf("%d writes of an object that has its finalizer", v.writes)
			}
			v.delete(in, unused)
			v.expect(in, "InUse", "True Used: it is deleted after Barn default/b")
			if v.exists(unused) {
				t.Error("what nothing uses is still there")
			}
			v.delete(of)
			v.reconcile(in)
			if v.exists(of) || v.exists(in) {
				t.Error("they are still there")
			}
		})
	}
}

// What a policy allows only to observe is protected, and left.
func TestObservedIsProtected(t *testing.T) {
	for name, annotation := range map[string][2]string{
		"observe": {policy.AllowAnnotation, "observe"},
		"skip":    {policy.ReconcileAnnotation, "skip"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			v.stands["a"] = ""
			in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
			metav1.SetMetaDataAnnotation(&in.ObjectMeta, annotation[0], annotation[1])
			metav1.SetMetaDataAnnotation(&in.ObjectMeta, external.IDAnnotation, "a")
			v.create(in, of)
			v.delete(in)
			v.expect(in, "InUse", "True Used")
			v.delete(of)
			v.reconcile(in)
			if _, stands := v.stands["a"]; v.exists(of) || v.exists(in) || !stands {
				t.Errorf("there is still %v, and the yard should be", v.stands)
			}
		})
	}
}

// An object that is not to be made yet can be deleted at once, as without Protect.
func TestProtectAfterAWait(t *testing.T) {
	v := newVillage(t)
	var err error
	v.yards, err = step.New(step.Options[*Yard]{Name: "yards", Client: counting{v.client, v}, APIReader: v.client},
		step.Step[*Yard]{Name: "Check", Do: func(context.Context, *step.Request[*Yard]) error { return ctrlkit.Wait("a person") }}, reference.Protect(v.yardOf))
	v.must(err)
	in := yard("a")
	v.create(in)
	if len(in.Finalizers) > 0 {
		t.Errorf("an object that waits has the finalizers %v", in.Finalizers)
	}
}

// A policy that keeps the resource does not end its uses.
func TestRetainedIsProtected(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	metav1.SetMetaDataAnnotation(&in.ObjectMeta, policy.ReclaimAnnotation, "retain")
	v.create(in, of)
	v.delete(in)
	v.expect(in, "InUse", "True Used")
	v.delete(of)
	v.reconcile(in)
	if _, ok := v.stands["a"]; v.exists(in) || !ok {
		t.Error("it is not gone, or the resource was not kept")
	}
}

// The cache does not show yet that the Yard is being deleted: nothing is made in it, and it does
// not wait for the Barn.
func TestConfirm(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	v.create(in)
	v.exists(in)
	v.lags = fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).Build()
	in.Finalizers = append(in.Finalizers, "example.com/keeps")
	v.must(v.client.Update(t.Context(), in))
	v.must(v.client.Delete(t.Context(), in))
	v.create(of)
	v.expect(of, "YardReady", "False YardNotReady: waiting for Yard default/a, which is being deleted, to be created again")
	if _, ok := v.stands["b"]; ok || v.exists(of) && !v.yardOf.Unused(of) {
		t.Errorf("the Barn stands in %q, and has %v", v.stands["b"], of.Annotations)
	}
	v.lags = nil
	v.reconcile(of, in)
	v.expect(in, "InUse", "False NotUsed")
	in.Finalizers = nil
	v.must(v.client.Update(t.Context(), in))
	v.delete(of) // although there is no Yard any more
	if v.exists(of) {
		t.Error("the Barn is still there")
	}
}

// A use is known to the process if another client has removed the annotation.
func TestRemovedAnnotation(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	v.create(in, of)
	of.Annotations = nil
	v.must(v.client.Update(t.Context(), of))
	v.delete(in)
	v.expect(in, "InUse", "True Used")
	v.reconcile(of)
	if v.uses(of) != "a" {
		t.Error("it is not written again")
	}
}

func TestLabels(t *testing.T) {
	v := newVillage(t)
	of := barn("b", BarnSpec{Labels: map[string]string{"color": "red", "size": "big"}})
	v.create(of, yard("small", "color", "red"))
	v.expect(of, "YardReady", "False YardNotFound: there is no Yard with the labels color=red,size=big in namespace default: create one")
	v.broken["m"] = true
	m, n, a := yard("m", "color", "red", "size", "big"), yard("n", "color", "red", "size", "big"), yard("a", "color", "red", "size", "big")
	v.create(m)
	v.reconcile(of)
	v.expect(of, "YardReady", "False YardNotReady: waiting for a Yard with the labels color=red,size=big in namespace default to be ready: m: its condition Ready is False")
	v.create(n)
	v.reconcile(of)
	v.expect(of, "Ready", "True")
	v.broken["m"] = false
	v.create(a)
	v.reconcile(m, of)
	if v.uses(of) != "n" || v.stands["b"] != "n" {
		t.Errorf("the Barn stands in %q, and uses %q: want the first one that could be used", v.stands["b"], v.uses(of))
	}
	v.delete(m, n)
	if v.exists(m) || !v.exists(n) {
		t.Error("the one that is not used is kept, or the other one is not")
	}
	v.reconcile(of)
	if v.uses(of) != "n" {
		t.Errorf("it uses %q", v.uses(of))
	}
	// Without its labels it is not selected any more.
	n.Labels = nil
	v.must(v.client.Update(t.Context(), n))
	v.reconcile(of, n)
	if v.uses(of) != "a" || v.stands["b"] != "a" || v.exists(n) {
		t.Errorf("the Barn stands in %q, and uses %q", v.stands["b"], v.uses(of))
	}
}

// What an object referred to before is in use until the resource is moved.
func TestChangedReference(t *testing.T) {
	v := newVillage(t)
	a, c, of := yard("a"), yard("c"), barn("b", BarnSpec{Yard: "a"})
	v.create(a, c, of)
	v.stuck = true
	of.Spec.Yard = "c"
	v.must(v.client.Update(t.Context(), of))
	v.reconcile(of)
	v.delete(a)
	if v.uses(of) != "c a" || !v.exists(a) {
		t.Errorf("the Barn uses %q", v.uses(of))
	}
	v.stuck = false
	v.reconcile(of, a)
	if v.uses(of) != "c" || v.exists(a) || v.stands["b"] != "c" {
		t.Errorf("the Barn stands in %q, and uses %q", v.stands["b"], v.uses(of))
	}
	of.Spec.Yard = ""
	v.must(v.client.Update(t.Context(), of))
	v.reconcile(of)
	v.expect(of, "YardReady", "True")
	v.delete(c)
	if v.uses(of) != "" || v.exists(c) {
		t.Errorf("a Barn without a Yard uses %q", v.uses(of))
	}
}

func TestOtherNamespaces(t *testing.T) {
	in := yard("a")
	in.Namespace = "other"
	of := barn("b", BarnSpec{Yard: "a", Namespace: "other"})
	t.Run("not allowed", func(t *testing.T) {
		v := newVillage(t)
		of := of.DeepCopyObject().(*Barn)
		v.create(in.DeepCopyObject().(*Yard), of)
		v.expect(of, "Stalled", "True AnotherNamespace: Barn: the reference yard is to namespace other, and may only be to default")
	})
	t.Run("allowed", func(t *testing.T) {
		v := newVillage(t, func(o *reference.Options[*Barn, *Yard]) { o.AllNamespaces = true })
		v.create(in, of)
		v.expect(of, "Ready", "True")
		v.delete(in)
		v.expect(in, "InUse", "True Used: it is deleted after Barn default/b")
		v.delete(of)
		v.reconcile(in)
		if v.exists(in) {
			t.Error("it is still there")
		}
	})
}

func TestManyUsers(t *testing.T) {
	v := newVillage(t)
	in := yard("a")
	v.create(in)
	for i := range 7 {
		v.create(barn(fmt.Sprintf("b%d", i), BarnSpec{Yard: "a"}))
	}
	v.delete(in)
	v.expect(in, "InUse", "True Used: it is deleted after Barn default/b0, Barn default/b1, Barn default/b2, Barn default/b3, Barn default/b4 and 2 more")
}

func TestWrongOptions(t *testing.T) {
	target := func(*Barn) reference.Target { return reference.Target{} }
	for name, options := range map[string]reference.Options[*Barn, *Yard]{
		"no name":   {Target: target},
		"no target": {Name: "yard"},
		"a name":    {Name: "Yard/x", Target: target},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, "it needs a name") {
					t.Errorf("panic %s", got)
				}
			}()
			reference.New(options)
		})
	}
}
