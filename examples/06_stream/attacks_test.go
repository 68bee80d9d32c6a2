// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/examples/internal/exampletest"
	"github.com/ctrlkit/ctrlkit/external"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/policy"
)

// A tenant who may edit one namespace, on a real control plane, and an operator of what has a name
// in a real PostgreSQL: whatever the tenant writes, nothing of a victim in another namespace is
// changed, deleted, read or blocked.
func TestTenantTakesNothing(t *testing.T) {
	rings.Explore(t, "takes minutes with a real PostgreSQL")
	db := startPostgreSQL(t)
	for _, kind := range []string{"Role", "Database"} {
		for _, stores := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stores owners %t", kind, stores), func(t *testing.T) {
				y := startTenancy(t, db, kind, stores)
				for i, in := range attacks {
					t.Run(in.name, func(t *testing.T) {
						a := &attack{tenancy: y.in(t), id: fmt.Sprintf("victims_%d", i)}
						a.stop = a.operate("everywhere", 10)
						a.victim = a.add(a.Namespace, fmt.Sprint("victim-", i), a.id)
						a.awaitReady(a.victim)
						a.before = a.row(a.id)
						in.run(a)
						a.end()
					})
				}
				t.Run("of one name", y.testOneName)
			})
		}
	}
}

// in returns the tenancy for a subtest.
func (y *tenancy) in(t *testing.T) *tenancy {
	is := *y
	is.T = t
	return &is
}

// An attack is on the resource of a victim.
type attack struct {
	*tenancy
	id     string
	victim client.Object
	before string // the row of the victim
	stop   func() // the operator
}

// thief creates an object of the tenant that names the resource of the victim. It does not begin
// before its annotations are as the attack wants them: those that depend on its UID, too.
func (a *attack) thief(name, id string, annotations func(thief client.Object) []string) client.Object {
	a.Helper()
	obj := a.add(a.tenant, name, id, condition.PauseAnnotation, "true")
	a.annotate(obj, append(annotations(obj), condition.PauseAnnotation, "-")...)
	return obj
}

// restart starts the operator again, as account.
func (a *attack) restart(account string) {
	a.Helper()
	a.stop()
	a.stop = a.operate(account, 10)
}

// intact checks that the row of the victim was not written, and that the tenant has no Secret with
// it.
func (a *attack) intact(when string) {
	a.Helper()
	if after := a.row(a.id); after != a.before {
		a.Errorf("%s, the row\n%s\nis\n%s:\n%s", when, a.before, after, a.visits.writesOf(a.id))
	}
	secrets := &corev1.SecretList{}
	exampletest.Must(a, a.List(a.Context(), secrets, client.InNamespace(a.tenant)))
	for _, s := range secrets.Items {
		if string(s.Data["username"]) == a.id {
			a.Errorf("%s, Secret %s has what is the victim's", when, s.Name)
		}
	}
}

// end deletes what the tenant has. After that, and in any case, the victim has its resource, and
// can change and delete it.
func (a *attack) end() {
	a.Helper()
	defer a.stop()
	a.intact("after the attack")
	for _, obj := range a.ofTenant() {
		a.deletes(obj)
	}
	a.intact("after the tenant has deleted everything")
	a.awaitReady(a.victim)
	a.change(a.victim, `{"spec":{"connections":9}}`)
	await(a.T, "the change of the victim", func() bool { return a.row(a.id) != a.before })
	a.awaitReady(a.victim)
	a.deletes(a.victim)
	if row := a.row(a.id); row != "" {
		a.Errorf("the victim is deleted, and there is %s", row)
	}
}

// ofTenant returns all objects of the tenant.
func (y *tenancy) ofTenant() (all []client.Object) {
	y.Helper()
	list := y.list()
	exampletest.Must(y, y.List(y.Context(), list, client.InNamespace(y.tenant)))
	_ = meta.EachListItem(list, func(obj runtime.Object) error {
		all = append(all, obj.(client.Object)) //nolint:errcheck // it is one
		return nil
	})
	return all
}

// attacks are what a tenant tries.
var attacks = []struct {
	name string
	run  func(a *attack)
}{
	{"the same name", func(a *attack) {
		obj := a.add(a.tenant, "thief", a.id)
		a.refused(obj)
		for _, word := range []string{string(a.victim.GetUID()), "former", "none"} {
			a.annotate(obj, external.IDAnnotation, a.id, "external.ctrlkit.dev/adopt-from", word)
			a.refused(obj)
		}
	}},
	{"forged records", func(a *attack) {
		for i, record := range []string{"created 2026-11-22T10:00:00Z for OWN", "created 2026-11-22T10:00:00Z for OWN from VICTIM", "begun 2026-11-22T10:00:00Z by another for OWN", "created 2026-11-22T10:00:00Z owner stored"} {
			for _, name := range []string{a.id, fmt.Sprint("own_", i)} {
				obj := a.thief(fmt.Sprintf("thief-%d-%t", i, name == a.id), name, func(thief client.Object) []string {
					is := strings.NewReplacer("OWN", string(thief.GetUID()), "VICTIM", string(a.victim.GetUID())).Replace(record)
					return []string{external.IDAnnotation, a.id, external.IntentAnnotation, is}
				})
				a.refused(obj)
			}
		}
		a.restart("everywhere")
		for _, obj := range a.ofTenant() {
			a.refused(obj)
		}
	}},
	{"an edited id, and deleted", func(a *attack) {
		a.exec(fmt.Sprintf("CREATE %s of_no_object", a.kind))
		unowned := a.row("of_no_object")
		for i, id := range []string{a.id, "of_no_object"} {
			own := a.add(a.tenant, fmt.Sprint("own-", i), fmt.Sprint("own_", i))
			a.awaitReady(own)
			a.annotate(own, external.IDAnnotation, id)
			a.refused(own)
			a.stop()
			a.annotate(own, external.IDAnnotation, id, external.IntentAnnotation, "-")
			exampletest.Must(a, a.as.Delete(a.Context(), own))
			a.stop = a.operate("everywhere", 10)
			a.deletes(own)
			a.intact("deleted with an edited id")
			a.Logf("its own: %q", a.row(fmt.Sprint("own_", i)))
			a.exec(fmt.Sprintf("DROP %s IF EXISTS own_%d", a.kind, i))
		}
		if now := a.row("of_no_object"); now != unowned {
			a.Errorf("what is of no object, %s, is %s", unowned, now)
		}
		a.exec(fmt.Sprintf("DROP %s of_no_object", a.kind))
	}},
	{"takes back what it gave", takesBack},
	{"only observes", func(a *attack) {
		for i, allow := range []string{"observe", "observe,delete", "observe,update"} {
			for _, name := range []string{a.id, fmt.Sprint("own_", i)} {
				obj := a.add(a.tenant, fmt.Sprintf("observer-%d-%t", i, name == a.id), name, external.IDAnnotation, a.id, policy.AllowAnnotation, allow)
				a.refused(obj)
				a.deletes(obj)
				a.intact("deleted with " + allow)
			}
		}
	}},
	{"a copied manifest", func(a *attack) {
		now := newNamed(a.kind, named{})
		exampletest.Must(a, a.Get(a.Context(), client.ObjectKeyFromObject(a.victim), now))
		for _, name := range []string{a.victim.GetName(), "copy"} {
			obj := now.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
			obj.SetNamespace(a.tenant)
			obj.SetName(name)
			obj.SetUID("")
			obj.SetResourceVersion("")
			exampletest.Must(a, a.as.Create(a.Context(), obj))
			a.refused(obj)
			for _, word := range []string{string(a.victim.GetUID()), "former", "none"} {
				a.annotate(obj, "external.ctrlkit.dev/adopt-from", word)
				a.refused(obj)
			}
		}
	}},
	{"the superuser, and an opened id", adoptsOpened},
	{"an operator of one namespace", func(a *attack) {
		a.restart("here")
		obj := a.add(a.tenant, "thief", a.id)
		a.refused(obj)
		a.restart("here")
		a.refused(obj)
		a.deletes(obj)
		a.intact("deleted by an operator of one namespace")
		a.restart("everywhere")
	}},
	{"what a lost owner has left", lostOwner},
	{"the claims", readsClaims},
}

// takesBack gives something to another object, which takes it, and then takes the word back or
// gives it to one more.
func takesBack(a *attack) {
	giver := a.add(a.tenant, "giver", "given")
	a.awaitReady(giver)
	taker := a.add(a.Namespace, "taker", "given", external.IDAnnotation, "given")
	a.refused(taker)
	a.annotate(giver, "external.ctrlkit.dev/give-to", string(taker.GetUID()))
	a.awaitReady(taker)
	given := a.row("given")
	third := a.add(a.tenant, "third", "given", external.IDAnnotation, "given")
	for _, to := range []string{"-", string(third.GetUID()), "-"} {
		a.annotate(giver, "external.ctrlkit.dev/give-to", to)
		a.refused(third)
		a.restart("everywhere")
		a.refused(third)
	}
	a.refused(giver)
	a.deletes(giver)
	a.deletes(third)
	if now := a.row("given"); now != given {
		a.Errorf("what was given and taken, %s, is %s:\n%s", given, now, a.visits.writesOf("given"))
	}
	a.awaitReady(taker)
	a.deletes(taker)
	if now := a.row("given"); now != "" {
		a.Errorf("who has taken it is deleted, and there is %s", now)
	}
}

// adoptsOpened names the superuser, before and after the owner of the namespace has opened other
// ids. What is adopted is stored at once.
func adoptsOpened(a *attack) {
	super := a.row("postgres")
	a.exec(fmt.Sprintf("CREATE %s legacy_1", a.kind))
	thieves := []client.Object{
		a.add(a.tenant, "super", "postgres"),
		a.add(a.tenant, "super-id", "own", external.IDAnnotation, "postgres"),
		a.add(a.tenant, "super-none", "postgres", external.IDAnnotation, "postgres", "external.ctrlkit.dev/adopt-from", "none"),
	}
	early := a.add(a.tenant, "early", "legacy_1", external.IDAnnotation, "legacy_1")
	refused := func() {
		a.Helper()
		for _, obj := range thieves {
			a.refused(obj)
		}
		if now := a.row("postgres"); now != super {
			a.Errorf("the superuser %s is %s", super, now)
		}
	}
	refused()
	a.refused(early)
	a.deletes(early)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.tenant}}
	opens := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:"legacy_*"}}}`, "external.ctrlkit.dev/adopt")))
	if err := a.as.Patch(a.Context(), namespace, opens); !apierrors.IsForbidden(err) {
		a.Errorf("the tenant may open the namespace: %v", err)
	}
	exampletest.Must(a, a.WithWatch.Patch(a.Context(), namespace, opens))
	heir := a.add(a.tenant, "heir", "legacy_1", external.IDAnnotation, "legacy_1")
	a.awaitReady(heir)
	if claims := a.claimsOf(heir); a.stores && !strings.Contains(a.row("legacy_1"), string(heir.GetUID())) || !a.stores && len(claims) != 1 {
		a.Errorf("it is adopted, with the row %s and the claims %v", a.row("legacy_1"), claims)
	}
	adopted := a.row("legacy_1")
	second := a.add(a.tenant, "second", "legacy_1", external.IDAnnotation, "legacy_1")
	a.refused(second)
	refused()
	a.restart("everywhere")
	a.refused(second)
	refused()
	a.deletes(second)
	if now := a.row("legacy_1"); now != adopted {
		a.Errorf("what was adopted, %s, is %s", adopted, now)
	}
	a.deletes(heir)
	if now := a.row("legacy_1"); now != "" {
		a.Errorf("who has adopted it is deleted, and there is %s", now)
	}
	for _, obj := range thieves {
		a.deletes(obj)
	}
	if now := a.row("postgres"); now != super {
		a.Errorf("the superuser %s is %s", super, now)
	}
}

// lostOwner names what an object has left that was deleted without its operator. Its owner has it
// back with the word of the condition, and the tenant has not.
func lostOwner(a *attack) {
	lost := a.add(a.Namespace, "lost", "lost")
	a.awaitReady(lost)
	was := newNamed(a.kind, named{})
	exampletest.Must(a, a.Get(a.Context(), client.ObjectKeyFromObject(lost), was))
	a.stop()
	a.change(lost, `{"metadata":{"finalizers":null}}`)
	a.deletes(lost)
	left := a.row("lost")
	a.stop = a.operate("everywhere", 10)
	finder := a.add(a.tenant, "finder", "lost")
	for _, word := range []string{"-", string(lost.GetUID()), "former", "none"} {
		a.annotate(finder, external.IDAnnotation, "lost", "external.ctrlkit.dev/adopt-from", word)
		a.refused(finder)
	}
	a.deletes(finder)
	annotations := []string{"external.ctrlkit.dev/adopt-from", "former"}
	for key, value := range was.GetAnnotations() {
		annotations = append(annotations, key, value)
	}
	restored := a.add(a.Namespace, "lost", "lost", annotations...)
	a.refused(restored)
	if now := a.row("lost"); now != left {
		a.Errorf("what was left, %s, is %s", left, now)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.Namespace}}
	a.Patch(a.T, namespace, fmt.Sprintf(`{"metadata":{"annotations":{%q:"lost"}}}`, "external.ctrlkit.dev/adopt"))
	a.awaitReady(restored)
	a.deletes(restored)
	if now := a.row("lost"); now != "" {
		a.Errorf("who has it back is deleted, and there is %s", now)
	}
}

// readsClaims tries every request for the claims, and a claim of its own in its namespace.
func readsClaims(a *attack) {
	claims := &coordinationv1.LeaseList{}
	exampletest.Must(a, a.List(a.Context(), claims, client.InNamespace(a.system)))
	if n := len(a.claimsOf(a.victim)); a.stores != (n == 0) {
		a.Fatalf("the victim has %d claims", n)
	}
	claims.Items = append(claims.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.system, Name: "another"}})
	denied := map[string]error{
		"list":       a.as.List(a.Context(), &coordinationv1.LeaseList{}, client.InNamespace(a.system)),
		"delete all": a.as.DeleteAllOf(a.Context(), &coordinationv1.Lease{}, client.InNamespace(a.system)),
		"the victim": a.as.Get(a.Context(), client.ObjectKeyFromObject(a.victim), newNamed(a.kind, named{})),
		"the Secret": a.as.Get(a.Context(), client.ObjectKeyFromObject(a.victim), &corev1.Secret{}),
	}
	thief := a.add(a.tenant, "thief", a.id)
	for _, claim := range claims.Items {
		denied["get "+claim.Name] = a.as.Get(a.Context(), client.ObjectKeyFromObject(&claim), &coordinationv1.Lease{})
		denied["update "+claim.Name] = a.as.Update(a.Context(), claim.DeepCopy())
		denied["patch "+claim.Name] = a.as.Patch(a.Context(), claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"thief"}}`)))
		denied["delete "+claim.Name] = a.as.Delete(a.Context(), claim.DeepCopy())
		forged := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: a.system, Name: claim.Name, Labels: claim.Labels, Annotations: claim.Annotations}}
		forged.Spec.HolderIdentity = new(fmt.Sprintf("%s.test.example.com/%s/thief/%s", a.kind, a.tenant, thief.GetUID()))
		denied["create "+claim.Name] = a.as.Create(a.Context(), forged.DeepCopy())
		forged.Namespace = a.tenant // which it may do, and which says nothing
		exampletest.Must(a, a.as.Create(a.Context(), forged))
	}
	for request, err := range denied {
		if !apierrors.IsForbidden(err) {
			a.Errorf("%s: %v", request, err)
		}
	}
	a.refused(thief)
	a.restart("everywhere")
	a.refused(thief)
}

// testOneName has ten objects of two namespaces that name the same, and come at the same time: one
// has it.
func (y *tenancy) testOneName(t *testing.T) {
	y = y.in(t)
	for _, workers := range []int{2, 10} {
		id := fmt.Sprint("contested_", workers)
		var all []client.Object
		for i := range 10 {
			all = append(all, y.add([]string{y.Namespace, y.tenant}[i%2], fmt.Sprintf("contender-%d-%d", workers, i), id))
		}
		stop := y.operate("everywhere", workers)
		won := func() int {
			return slices.IndexFunc(all, func(obj client.Object) bool { return strings.HasPrefix(y.ready(obj), "True") })
		}
		await(t, "one of them to be ready", func() bool { return won() >= 0 })
		winner := all[won()]
		others := slices.DeleteFunc(slices.Clone(all), func(obj client.Object) bool { return obj == winner })
		before := y.row(id)
		for _, obj := range others {
			y.refused(obj)
		}
		for _, obj := range others {
			y.deletes(obj)
		}
		if after := y.row(id); after != before {
			t.Errorf("with %d workers, the row %s is %s", workers, before, after)
		}
		y.change(winner, `{"spec":{"connections":9}}`)
		await(t, "the change of the winner", func() bool { return y.row(id) != before })
		y.deletes(winner)
		if after := y.row(id); after != "" {
			t.Errorf("all are deleted, and there is %s", after)
		}
		stop()
	}
}
