// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// unmanaged are the decisions of persons by which nothing is made for an object.
var unmanaged = map[string][2]string{
	"observe": {policy.AllowAnnotation, "observe"},
	"skip":    {policy.ReconcileAnnotation, "skip"},
	"paused":  {step.PauseAnnotation, "true"},
	"invalid": {policy.AllowAnnotation, "obsrve"},
}

// keeps checks whether a Yard that is deleted stays.
func (v *village) keeps(in *Yard, want bool, by string) {
	v.t.Helper()
	v.delete(in)
	v.reconcile(in)
	switch exists := v.exists(in); {
	case exists != want:
		v.t.Errorf("after its deletion, the Yard is there: %v, want %v", exists, want)
	case want:
		v.expect(in, "InUse", "True Used: it is deleted after "+by)
	}
}

// An object for which nothing is made needs what it refers to, to observe that: it uses it, although it
// was never managed, and in another process, too.
func TestUnmanagedUse(t *testing.T) {
	for name, annotation := range unmanaged {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				v := newVillage(t)
				v.stands["b"] = "a"
				in, unused, of := yard("a"), yard("unused"), barn("b", BarnSpec{Yard: "a"})
				metav1.SetMetaDataAnnotation(&of.ObjectMeta, annotation[0], annotation[1])
				metav1.SetMetaDataAnnotation(&of.ObjectMeta, external.IDAnnotation, "b")
				v.create(in, unused, of)
				v.writes = 0
				v.reconcile(of)
				if v.writes > 0 || v.exists(of) && len(of.Finalizers) > 0 {
					t.Errorf("an idle Barn costs %d writes, and has the finalizers %v", v.writes, of.Finalizers)
				}
				if restart {
					v.restart()
				}
				v.keeps(unused, false, "")
				v.keeps(in, true, "Barn default/b")
				v.reconcile(of, in) // which knows that the Yard is being deleted
				v.expect(in, "InUse", "True Used")
				v.must(v.client.Delete(t.Context(), of))
				if v.exists(of) || v.stands["b"] != "a" {
					t.Errorf("the Barn stands in %q, and should stand in a without its object", v.stands["b"])
				}
				delete(v.stands, "b")
				if v.reconcile(in); v.exists(in) {
					t.Error("the Yard is still there")
				}
			})
		}
	}
}

// Who refers to it no more does not keep it.
func TestUnmanagedRefersToAnother(t *testing.T) {
	for name, annotation := range unmanaged {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			v.stands["b"] = "c"
			a, c, of := yard("a"), yard("c"), barn("b", BarnSpec{Yard: "a"})
			metav1.SetMetaDataAnnotation(&of.ObjectMeta, annotation[0], annotation[1])
			metav1.SetMetaDataAnnotation(&of.ObjectMeta, external.IDAnnotation, "b")
			v.create(a, c, of)
			v.change(of, func() { of.Spec.Yard = "c" })
			v.keeps(a, false, "")
			v.keeps(c, true, "Barn default/b")
		})
	}
}

// One that waits for it uses nothing, whatever the policy is.
func TestUnmanagedWaits(t *testing.T) {
	for _, name := range []string{"observe", "skip"} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			v.broken["a"] = true
			in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
			metav1.SetMetaDataAnnotation(&of.ObjectMeta, unmanaged[name][0], unmanaged[name][1])
			v.create(in, of)
			v.expect(of, "YardReady", "False YardNotReady")
			v.keeps(in, false, "")
		})
	}
}

// A pause that ends, of an object that was never reconciled, ends its use: it waits.
func TestPauseEnds(t *testing.T) {
	v := newVillage(t)
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a"})
	metav1.SetMetaDataAnnotation(&of.ObjectMeta, step.PauseAnnotation, "true")
	v.create(in, of)
	v.keeps(in, true, "Barn default/b")
	watch := reference.Protect(v.yardOf).Watches()[0]
	before := of.DeepCopyObject().(*Barn)
	v.change(of, func() { of.Annotations = nil })
	if !watch.Changed(before, of) || len(watch.Mapped(before, schema.GroupKind{})) == 0 {
		t.Error("the Yard is not reconciled")
	}
	if watch.Changed(of, of) {
		t.Error("it is reconciled although nothing has changed")
	}
	v.reconcile(in)
	if v.exists(in) {
		t.Error("it is still there")
	}
	v.reconcile(of)
	v.expect(of, "YardReady", "False YardNotFound")
}

// Who may not refer to an object can't keep it, whatever its annotations say.
func TestForgedUse(t *testing.T) {
	consented := func(o *yardOptions) { o.Allowed = reference.Consented }
	all := func(o *yardOptions) { o.AllNamespaces = true }
	for _, tt := range []struct {
		name      string
		change    func(*yardOptions)
		namespace string
		consent   string
		paused    bool
		keeps     bool
	}{
		{name: "without consent", change: consented, namespace: "other"},
		{name: "without consent, paused", change: consented, namespace: "other", paused: true},
		{name: "with the consent for another namespace", change: consented, namespace: "other", consent: "shop"},
		{name: "with consent", change: consented, namespace: "other", consent: "other", keeps: true},
		{name: "with consent, paused", change: consented, namespace: "other", consent: "*", paused: true, keeps: true},
		{name: "of a reference within a namespace", change: func(*yardOptions) {}, namespace: "other"},
		{name: "of a reference to all", change: all, namespace: "other", keeps: true},
		{name: "in its own namespace", change: consented, namespace: "default", keeps: true}, // whose objects may refer to it
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newVillage(t, tt.change)
			in := yard("a")
			if tt.consent != "" {
				metav1.SetMetaDataAnnotation(&in.ObjectMeta, reference.ConsentAnnotation, tt.consent)
			}
			v.create(in)
			v.must(v.client.Get(t.Context(), client.ObjectKeyFromObject(in), in))
			of := barn("b", BarnSpec{Yard: "a", Namespace: "default"})
			of.Namespace = tt.namespace
			if tt.paused {
				metav1.SetMetaDataAnnotation(&of.ObjectMeta, step.PauseAnnotation, "true")
			} else {
				of.Spec.Yard = "nothing"
				metav1.SetMetaDataAnnotation(&of.ObjectMeta, v.yardOf.Annotation(), "default/a/"+string(in.UID))
			}
			v.must(v.client.Create(t.Context(), of))
			v.keeps(in, tt.keeps, "Barn "+tt.namespace+"/b")
		})
	}
}

// A use ends when the owner of what is used takes the consent back.
func TestWithdrawnConsent(t *testing.T) {
	v := newVillage(t, func(o *yardOptions) { o.Allowed = reference.Consented })
	in, of := yard("a"), barn("b", BarnSpec{Yard: "a", Namespace: "other"})
	in.Namespace = "other"
	metav1.SetMetaDataAnnotation(&in.ObjectMeta, reference.ConsentAnnotation, "default")
	v.create(in, of)
	v.keeps(in, true, "Barn default/b")
	delete(v.stands, "b") // who withdraws it knows that
	v.change(in, func() { in.Annotations[reference.ConsentAnnotation] = "" })
	if v.exists(in) {
		t.Error("it is still there")
	}
}
