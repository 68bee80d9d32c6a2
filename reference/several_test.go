// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/reference"
)

type yardOptions = reference.Options[*Barn, *Yard]

// several makes Yards of a Barn what it refers to.
func several(o *yardOptions) {
	o.Target, o.Targets = nil, func(obj *Barn) []reference.Target { return obj.Spec.Yards }
}

func named(names ...string) BarnSpec {
	var spec BarnSpec
	for _, name := range names {
		spec.Yards = append(spec.Yards, reference.Target{Name: name})
	}
	return spec
}

// stands checks where a Barn stands, and what it uses.
func (v *village) stand(of *Barn, in, uses string) {
	v.t.Helper()
	if got := v.uses(of); v.stands[of.Name] != in || got != uses {
		v.t.Errorf("Barn %s stands in %q and uses %q, want %q and %q", of.Name, v.stands[of.Name], got, in, uses)
	}
}

// change updates an object, and reconciles it.
func (v *village) change(obj client.Object, change func()) {
	v.t.Helper()
	v.exists(obj)
	change()
	v.must(v.client.Update(v.t.Context(), obj))
	v.reconcile(obj)
}

func TestSeveral(t *testing.T) {
	v := newVillage(t, several)
	a, b, c, of := yard("a"), yard("b"), yard("c"), barn("x", named("b", "a", "b"))
	v.create(c, of)
	v.expect(of, "YardReady", "False YardNotFound: Yard default/b does not exist: create it; Yard default/a does not exist: create it")
	v.create(a)
	v.reconcile(of)
	v.expect(of, "YardReady", "False YardNotFound: Yard default/b does not exist: create it")
	v.stand(of, "", "") // who waits uses nothing
	v.create(b)
	v.reconcile(of)
	v.expect(of, "Ready", "True")
	v.stand(of, "b+a", "b a")
	v.writes = 0
	v.reconcile(of)
	if v.writes > 0 {
		t.Errorf("%d writes of an object that is ready", v.writes)
	}
	v.delete(a)
	v.expect(a, "InUse", "True Used: it is deleted after Barn default/x")
	v.stuck = true
	v.change(of, func() { of.Spec = named("c", "b") })
	v.stand(of, "b+a", "c b | a")
	v.reconcile(a)
	if !v.exists(a) {
		t.Fatal("it is gone, although the Barn stands in it")
	}
	v.stuck = false
	v.reconcile(of, a)
	v.stand(of, "c+b", "c b")
	if v.exists(a) {
		t.Error("it is still there, although nothing uses it")
	}
	v.delete(b, c, of)
	if v.reconcile(b, c); v.exists(b) || v.exists(c) || v.exists(of) {
		t.Error("one of them is still there")
	}
}

// A Barn that is deleted while it moves finds what it used, and what it began to use.
func TestSeveralOfADeletedObject(t *testing.T) {
	v := newVillage(t, several)
	a, c, of := yard("a"), yard("c"), barn("x", named("a"))
	v.create(a, c, of)
	v.stuck = true
	v.change(of, func() { of.Spec = named("c") })
	var got string
	v.deleting = func(in string) { got = in }
	v.delete(of)
	if got != "c+a" || v.exists(of) {
		t.Errorf("it was deleted with %q", got)
	}
}

func TestEvery(t *testing.T) {
	v := newVillage(t, several)
	red := map[string]string{"color": "red"}
	of := barn("x", BarnSpec{Yards: []reference.Target{{Labels: red, Every: true}}})
	v.create(of)
	v.expect(of, "YardReady", "False YardNotFound: there is no Yard with the labels color=red in namespace default: create one")
	v.broken["b"] = true
	a, b, c := yard("a", "color", "red"), yard("b", "color", "red"), yard("c", "color", "red")
	v.create(b)
	v.reconcile(of)
	v.expect(of, "YardReady", "False YardNotReady: waiting for a Yard with the labels color=red in namespace default to be ready: b: its")
	v.create(a, c)
	v.reconcile(of)
	v.stand(of, "a+c", "a c")
	v.expect(of, "Ready", "True") // one that is broken blocks no one
	v.expect(of, "YardReady", "True YardNotReady: waiting for each Yard with the labels color=red in namespace default to be ready: b: its")
	v.broken["b"] = false
	v.reconcile(b, of)
	v.stand(of, "b+a+c", "b a c")
	v.expect(of, "YardReady", "True YardReady")
	v.broken["a"] = true // it is in use
	v.reconcile(a, of)
	v.stand(of, "b+a+c", "b a c")
	v.change(c, func() { c.Labels = nil })
	v.reconcile(of)
	v.stand(of, "b+a", "b a")
	v.delete(a) // the Barn leaves it
	if v.reconcile(of, a); v.exists(a) {
		t.Error("it is still there")
	}
	v.stand(of, "b", "b")
	v.delete(b) // the last one stays
	v.reconcile(of, b)
	v.stand(of, "b", "b")
	v.expect(b, "InUse", "True Used")
	v.delete(of)
	if v.reconcile(b); v.exists(b) || v.exists(of) {
		t.Error("they are still there")
	}
}

func TestKeep(t *testing.T) {
	for name, every := range map[string]bool{"one": false, "every": true} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t, several)
			red := map[string]string{"color": "red"}
			a, b := yard("a", "color", "red"), yard("b", "color", "blue")
			of := barn("x", BarnSpec{Yards: []reference.Target{{Labels: red, Every: every, Keep: true}}})
			v.create(a, b, of)
			v.change(a, func() { a.Labels = nil })
			v.change(b, func() { b.Labels = red })
			v.reconcile(of)
			v.stand(of, "a", "a")
			v.stuck = true
			v.change(of, func() { metav1.SetMetaDataAnnotation(&of.ObjectMeta, v.yardOf.ResolveAnnotation(), "yes") })
			v.stand(of, "a", "b | a")
			v.stuck = false
			v.reconcile(of)
			v.stand(of, "b", "b")
			if _, ok := of.Annotations[v.yardOf.ResolveAnnotation()]; ok {
				t.Error("it is not removed")
			}
		})
	}
}

func TestInvalidTargets(t *testing.T) {
	red := map[string]string{"color": "red"}
	for want, targets := range map[string][]reference.Target{
		"Keep is for the only target of an object, not for one of 2":                           {{Labels: red, Keep: true}, {Name: "b"}},
		"Every, Keep and AnyNamespace are for a target that labels select, not for the name b": {{Name: "b", Every: true}},
		"AnyNamespace is for a target without a namespace, not for one in other":               {{Labels: red, Namespace: "other", AnyNamespace: true}},
	} {
		v := newVillage(t, several)
		of := barn("x", BarnSpec{Yards: targets})
		v.create(yard("b", "color", "red"), of)
		v.expect(of, "Stalled", "True InvalidTarget: Barn: the reference yard: "+want)
	}
	v := newVillage(t, func(o *yardOptions) {
		o.Target = func(*Barn) reference.Target { return reference.Target{Labels: red, Every: true} }
	})
	of := barn("x", BarnSpec{})
	v.create(of)
	v.expect(of, "Stalled", "True InvalidTarget: Barn: the reference yard: Every is for Options.Targets, not for Options.Target")
}

// The end of a use is an event for what was used, although the annotation that recorded it was removed
// before.
func TestUseThatEndsWithoutItsRecord(t *testing.T) {
	v := newVillage(t)
	of := barn("x", BarnSpec{Yard: "a"})
	v.create(yard("a"), yard("c"), of)
	v.stuck = true
	v.change(of, func() { of.Spec.Yard = "c" })
	v.stand(of, "a", "c a")
	recorded := of.DeepCopyObject().(*Barn)
	w := reference.Protect(v.yardOf).Watches()[0]
	of.Annotations = nil
	v.must(v.client.Update(t.Context(), of))
	removed := of.DeepCopyObject().(*Barn)
	if w.Changed(recorded, removed) {
		t.Error("the removal of the annotation ends a use")
	}
	v.stuck = false
	v.reconcile(of)
	v.stand(of, "c", "c")
	if a := (client.ObjectKey{Namespace: "default", Name: "a"}); !w.Changed(removed, of) || !slices.Contains(w.Mapped(of, schema.GroupKind{}), a) {
		t.Error("the use of Yard a has ended, and no event says so")
	}
	if w.Changed(of, of) {
		t.Error("it ends twice")
	}
}

// What is kept and is removed by force is selected again.
func TestKeptIsGone(t *testing.T) {
	v := newVillage(t, several)
	red := map[string]string{"color": "red"}
	a, b := yard("a", "color", "red"), yard("b", "color", "red")
	of := barn("x", BarnSpec{Yards: []reference.Target{{Labels: red, Keep: true}}})
	v.create(a, b, of)
	v.stand(of, "a", "a")
	v.exists(a)
	a.Finalizers = nil
	v.must(v.client.Update(t.Context(), a))
	v.must(v.client.Delete(t.Context(), a))
	v.create(yard("a")) // a stranger of the same name
	v.reconcile(of)
	v.stand(of, "b", "b")
}

// A choice that is not to be kept is made again if a person wants it, and so is one of a single target.
func TestResolveAgain(t *testing.T) {
	v := newVillage(t)
	red := map[string]string{"color": "red"}
	v.broken["a"] = true
	a, b, of := yard("a", "color", "red"), yard("b", "color", "red"), barn("x", BarnSpec{Labels: red})
	v.create(a, b, of)
	v.broken["a"] = false
	v.reconcile(a, of)
	v.stand(of, "b", "b")
	resolve := func() {
		v.change(of, func() { metav1.SetMetaDataAnnotation(&of.ObjectMeta, "resolve.references.ctrlkit.dev/yard", "") })
	}
	resolve()
	v.stand(of, "a", "a")
	v.broken["a"] = true // it is in use, but not good enough to be chosen
	v.reconcile(a)
	resolve()
	v.stand(of, "b", "b")
}

func TestOptional(t *testing.T) {
	v := newVillage(t, func(o *yardOptions) {
		o.Target = func(obj *Barn) reference.Target { return reference.Target{Name: obj.Spec.Yard, Optional: true} }
	})
	in, of := yard("a"), barn("x", BarnSpec{Yard: "a"})
	v.create(of)
	v.expect(of, "Ready", "True")
	v.expect(of, "YardReady", "True YardNotFound: optional: Yard default/a does not exist: create it")
	v.stand(of, "a field", "")
	v.broken["a"] = true
	v.create(in)
	v.reconcile(of)
	v.expect(of, "YardReady", "True YardNotReady: optional: waiting for Yard default/a to be ready")
	v.broken["a"] = false
	v.reconcile(in, of)
	v.stand(of, "a", "a")
	v.delete(in)
	v.expect(in, "InUse", "True Used") // it is kept, as any other
	in.Finalizers = nil
	v.must(v.client.Update(t.Context(), in)) // by force
	v.reconcile(of)
	v.stand(of, "a field", "")
	v.delete(of)
	if v.exists(of) {
		t.Error("it is still there")
	}
}

// An optional one that is removed by force does not keep its user from being deleted.
func TestOptionalIsGone(t *testing.T) {
	v := newVillage(t, several)
	in, of := yard("a"), barn("x", BarnSpec{Yards: []reference.Target{{Name: "a", Optional: true}}})
	v.create(in, of)
	v.stand(of, "a", "a")
	v.exists(in)
	in.Finalizers = nil
	v.must(v.client.Update(t.Context(), in))
	v.must(v.client.Delete(t.Context(), in))
	v.delete(of)
	if v.exists(of) {
		t.Error("it is still there")
	}
}

func consented(o *yardOptions) { o.Allowed = reference.Consented }

// Another namespace is referred to where the object there allows it, and the use counts there.
func TestAllowed(t *testing.T) {
	v := newVillage(t, consented)
	in, of := yard("a"), barn("x", BarnSpec{Yard: "a", Namespace: "other"})
	in.Namespace = "other"
	refused := "False YardNotFound: Yard other/a does not exist, or does not allow references from namespace default"
	v.create(of)
	v.expect(of, "YardReady", refused)
	v.create(in)
	v.reconcile(of)
	v.expect(of, "YardReady", refused)
	for _, from := range []string{"", "defaults", "*s", "other"} {
		v.change(in, func() { in.Annotations = map[string]string{reference.ConsentAnnotation: from} })
		v.reconcile(of)
		v.expect(of, "YardReady", refused)
	}
	v.change(in, func() { in.Annotations = map[string]string{reference.ConsentAnnotation: "shop, default"} })
	v.reconcile(of)
	v.stand(of, "a", "a")
	v.delete(in)
	v.expect(in, "InUse", "True Used: it is deleted after Barn default/x")
	v.change(in, func() { in.Annotations = map[string]string{reference.ConsentAnnotation: "*"} })
	v.expect(in, "InUse", "True Used")
	v.delete(of)
	if v.reconcile(in); v.exists(in) || v.exists(of) {
		t.Error("they are still there")
	}
}

// A record that a person has written opens no other namespace.
func TestForgedRecord(t *testing.T) {
	v := newVillage(t, consented)
	in, of := yard("a"), barn("x", BarnSpec{Yard: "a", Namespace: "other"})
	in.Namespace = "other"
	v.create(in)
	v.exists(in)
	of.Annotations = map[string]string{"references.ctrlkit.dev/yard": "other/a/" + string(in.UID)}
	of.Finalizers = []string{"barns.test.example.com/finalizer"}
	v.create(of)
	v.expect(of, "YardReady", "False YardNotFound")
	v.stands["x"] = "a"
	v.deleting = func(string) { t.Error("the Yard of another namespace was used") }
	v.delete(of)
}

func TestAnyNamespace(t *testing.T) {
	red := map[string]string{"color": "red"}
	spec := BarnSpec{Yards: []reference.Target{{Labels: red, Every: true, AnyNamespace: true}}}
	elsewhere := func(name string, annotations map[string]string) *Yard {
		in := yard(name, "color", "red")
		in.Namespace, in.Annotations = "other", annotations
		return in
	}
	t.Run("allowed", func(t *testing.T) {
		v := newVillage(t, several, consented)
		of := barn("x", spec)
		v.create(yard("a", "color", "red"), elsewhere("b", map[string]string{reference.ConsentAnnotation: "default"}), elsewhere("c", nil), of)
		v.stand(of, "a+b", "a b")
	})
	t.Run("all", func(t *testing.T) {
		v := newVillage(t, several, func(o *yardOptions) { o.AllNamespaces = true })
		of := barn("x", spec)
		v.create(yard("a", "color", "red"), elsewhere("c", nil), of)
		v.stand(of, "a+c", "a c")
	})
	t.Run("not allowed", func(t *testing.T) {
		v := newVillage(t, several)
		of := barn("x", spec)
		v.create(of)
		v.expect(of, "Stalled", "True AnotherNamespace: Barn: the reference yard is to all namespaces, and may only be to default")
	})
}

// The keys of the watch are those of what the objects name, select, and use.
func TestKeysOfTheWatch(t *testing.T) {
	r := newYardReference(several, consented)
	w := r.Watches()[0]
	in := yard("a", "color", "red")
	in.Namespace = "other"
	of := barn("x", BarnSpec{Yards: []reference.Target{{Name: "n"}, {Labels: map[string]string{"color": "red"}, AnyNamespace: true}, {}}})
	of.Annotations = map[string]string{r.Annotation(): "default/n/1 | other/former/2"}
	want := []client.ObjectKey{{Name: "n"}, {Namespace: "*", Name: "color=red"}, {Namespace: "default", Name: "n"}, {Namespace: "other", Name: "former"}}
	keys := map[client.ObjectKey]bool{}
	for _, key := range w.NamedBy(of) {
		keys[key] = true
	}
	for _, key := range want {
		if !keys[key] {
			t.Errorf("%v is not among %v", key, keys)
		}
	}
	if as := w.NamedAs(in); len(keys) != len(want) || len(as) != 2 || as[1] != want[1] {
		t.Errorf("keys %v, as %v", keys, as)
	}
}

func TestCopy(t *testing.T) {
	v := newVillage(t, func(o *yardOptions) {
		o.Copy = func(obj *Barn, all []*Yard) { obj.Spec.Copied = all[0].Name + " " + all[0].Labels["size"] }
	})
	in, of := yard("a", "size", "9"), barn("x", BarnSpec{Yard: "a"})
	v.create(of)
	if v.exists(of); of.Spec.Copied != "" {
		t.Error("something was copied")
	}
	v.create(in)
	v.reconcile(of)
	v.stand(of, "a", "a")
	v.expect(of, "Ready", "True")
	if of.Spec.Copied != "a 9" || of.Spec.Yard != "a" {
		t.Errorf("the spec is %v", of.Spec)
	}
	v.change(in, func() { in.Labels["size"] = "10" })
	v.reconcile(of)
	if v.exists(of); of.Spec.Copied != "a 10" {
		t.Errorf("the spec is %v", of.Spec)
	}
	v.writes = 0
	v.reconcile(of)
	if v.writes > 0 {
		t.Errorf("%d writes of an object that is ready", v.writes)
	}
	v.change(of, func() { metav1.SetMetaDataAnnotation(&of.ObjectMeta, policy.ReconcileAnnotation, "skip") })
	v.change(in, func() { in.Labels["size"] = "11" })
	v.reconcile(of)
	if v.exists(of); of.Spec.Copied != "a 10" {
		t.Errorf("the spec of an object that is to be left alone is %v", of.Spec)
	}
}

func TestCopyOfMetadata(t *testing.T) {
	v := newVillage(t, func(o *yardOptions) {
		o.Copy = func(obj *Barn, all []*Yard) { obj.Labels = maps.Clone(all[0].Labels) }
	})
	of := barn("x", BarnSpec{Yard: "a"})
	v.create(yard("a", "size", "9"), of)
	if err := v.once(of); err == nil || !strings.Contains(err.Error(), "Options.Copy has changed labels or annotations") {
		t.Errorf("error %v", err)
	}
}

// Nothing is referred to, so nothing is chosen.
func TestGetOfNothing(t *testing.T) {
	v := newVillage(t)
	of := barn("x", BarnSpec{})
	v.create(yard("a"))
	v.create(of)
	if _, err := v.yardOf.Get(t.Context(), v.request(of)); err == nil || !strings.Contains(err.Error(), "a Yard") {
		t.Errorf("error %v", err)
	}
}
