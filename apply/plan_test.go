// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/step"
)

// The plan says what would be done, and nothing is done.
func TestPlan(t *testing.T) {
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foreign"}}
	owner := &corev1.ReplicationController{}
	password, wantOld := "one", true
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ReplicationController], want *apply.Set) error {
		want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "password"}, StringData: map[string]string{"password": password}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "same"}, Data: map[string]string{"a": "b"}},
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "edited"}, Data: map[string]string{"a": "b"}})
		if wantOld {
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
		} else {
			want.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
		}
		return nil
	}, apply.Owns(&corev1.Secret{}, &corev1.ConfigMap{}))
	req := ctrlkittest.NewRequest(t, owner, ctrlkittest.WithObjects(foreign))

	first, err := apply.PlanFor(t.Context(), req, parts)
	must(t, err)
	if diff := cmp.Diff("create   Secret default/password\ncreate   ConfigMap default/same\ncreate   ConfigMap default/edited\ncreate   ConfigMap default/old\n", first.String()); diff != "" {
		t.Error(diff)
	}
	if err := parts.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"c"}}`))
	must(t, req.Client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "edited"}}, edit, client.FieldOwner("kubectl-edit")))
	password, wantOld = "two", false
	for range 2 { // the first one has changed nothing
		plan, err := apply.PlanFor(t.Context(), req, parts)
		must(t, err)
		want := `change   Secret default/password
           data.password: "(hidden)" -> "(hidden)"
change   ConfigMap default/edited: data is no longer ours: last written by kubectl-edit
           data.a: "c" -> "b"
create   ConfigMap default/new
refuse   ConfigMap default/foreign: exists, has no owner and is not ours
wait     ConfigMap default/old: it is pruned when all objects of the set are written
1 unchanged
`
		if diff := cmp.Diff(want, plan.String()); diff != "" {
			t.Error(diff)
		}
	}
	data, err := json.Marshal(first)
	must(t, err)
	if want := `{"changes":[{"action":"create","object":{"kind":"Secret","namespace":"default","name":"password"}},`; len(data) < len(want) || string(data[:len(want)]) != want {
		t.Errorf("got %s", data)
	}
}

func TestPlanOfAnotherStep(t *testing.T) {
	req := ctrlkittest.NewRequest(t, &corev1.ConfigMap{})
	other := step.Step[*corev1.ConfigMap]{Name: "Other"}
	if _, err := apply.PlanFor(t.Context(), req, other); err == nil || err.Error() != `step "Other" is not made by apply.Children: only such steps have a plan` {
		t.Errorf("got %v", err)
	}
}

// Random sets of a few ConfigMaps, some of which are refused, immutable, edited by others, or too many
// to prune: what the plan says is what the reconcile then does.
func TestPlanIsWhatHappens(t *testing.T) {
	for seed := range uint64(max(*sequences, 8)) {
		plansHappen(newCluster(t), seed)
	}
}

// The same on a real control plane.
func TestPlanIsWhatHappensOnRealServer(t *testing.T) {
	rings.Explore(t, "starts a control plane of its own")
	plane := startPlane(t, 0)
	for seed := range uint64(*sequences) {
		c := connect(t, plane, fmt.Sprintf("plans-%d", seed))
		c.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.namespace}})
		plansHappen(c, 1000+seed)
	}
}

// plansHappen plans and reconciles a random sequence of sets of one Shop.
func plansHappen(c *cluster, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b", "c", "d", "e", "foreign", "Bad_Name"}
	wanted, isImmutable := map[string]string{}, random.IntN(3) == 0
	var policies []any
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*Shop], want *apply.Set) error {
		for _, name := range slices.Sorted(maps.Keys(wanted)) {
			cm := newConfigMap(name, "of", wanted[name])
			if name == "d" && isImmutable {
				cm.Immutable = &isImmutable
			}
			want.Add(append([]any{cm}, policies...)...)
		}
		return nil
	}, apply.Owns(&corev1.ConfigMap{}), apply.PruneLimit(2))
	c.create(newConfigMap("foreign", "of", "others"))
	shop := client.ObjectKeyFromObject(c.shop("shop"))
	engine, err := step.New(step.Options[*Shop]{Name: "shops", Client: c.client}, parts)
	if err != nil {
		c.t.Fatalf("%v", err)
	}
	for turn := range 8 {
		clear(wanted)
		for _, name := range names {
			if rare := name == "foreign" || name == "Bad_Name"; random.IntN(3) > 0 && (!rare || random.IntN(4) == 0) {
				wanted[name] = fmt.Sprint(random.IntN(2))
			}
		}
		policies = [][]any{nil, {apply.Theirs}, {apply.StopOnConflict}, {apply.CreateOnly}, {apply.Replace}}[random.IntN(5)]
		if edited := newConfigMap(names[random.IntN(5)]); random.IntN(2) == 0 {
			edited.Namespace = c.namespace
			edit := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"of":"`+fmt.Sprint(random.IntN(3))+`"}}`))
			_ = c.client.Patch(c.ctx, edited, edit, client.FieldOwner("kubectl-edit")) // if it is there
		}
		req, err := engine.RequestFor(c.ctx, shop)
		if err != nil {
			c.t.Fatalf("%v", err)
		}
		plan, err := apply.PlanFor(c.ctx, req, parts)
		if err != nil {
			c.t.Fatalf("seed %d, turn %d: %v", seed, turn, err)
		}
		before := c.versions()
		_, doErr := engine.Reconcile(c.ctx, reconcile.Request{NamespacedName: shop})
		after := c.versions()
		if happened := happens(before, after); happened != planned(plan, before) {
			c.t.Fatalf("seed %d, turn %d: happened:\n%splanned:\n%sall of it:\n%s%v", seed, turn, happened, planned(plan, before), plan, doErr)
		}
		refuses := slices.ContainsFunc(plan.Changes, func(c apply.Change) bool { return c.Action == apply.ActionRefuse })
		if refuses != (doErr != nil) {
			c.t.Fatalf("seed %d, turn %d: %v, planned:\n%s", seed, turn, doErr, plan)
		}
	}
}

// versions returns the resource versions of the ConfigMaps.
func (c *cluster) versions() map[string]string {
	list, found := &corev1.ConfigMapList{}, map[string]string{}
	if err := c.client.List(c.ctx, list, client.InNamespace(c.namespace)); err != nil {
		c.t.Fatalf("%v", err)
	}
	for _, cm := range list.Items {
		found[cm.Name] = cm.ResourceVersion
	}
	return found
}

// happens returns what has become of objects, by their names and versions.
func happens(before, after map[string]string) string {
	var text strings.Builder
	both := maps.Clone(before)
	maps.Copy(both, after)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		switch was, is := before[name], after[name]; {
		case was == "":
			fmt.Fprintln(&text, "create", name)
		case is == "":
			fmt.Fprintln(&text, "prune", name)
		case was != is:
			fmt.Fprintln(&text, "change", name)
		}
	}
	return text.String()
}

// planned returns the same of a plan.
func planned(plan *apply.Plan, before map[string]string) string {
	after := maps.Clone(before)
	for _, c := range plan.Changes {
		switch c.Action {
		case apply.ActionCreate, apply.ActionChange:
			after[c.Object.Name] = "planned"
		case apply.ActionPrune, apply.ActionReplace: // it is created again by the next reconcile
			delete(after, c.Object.Name)
		}
	}
	return happens(before, after)
}

// A field that the definition does not have is a mistake of the set, although the server answers 500, and
// is not asked to validate fields.
func TestUnknownField(t *testing.T) {
	wrong := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "dta": map[string]any{"a": "b"}}}
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(wrong) }, apply.Owns(&corev1.ConfigMap{}))
	err := o.settle(shop)
	if failure.Classify(err).Class != failure.ClassTerminal || !strings.Contains(err.Error(), ".dta: field not declared in schema") {
		t.Errorf("error %v", err)
	}
	if got := o.condition(shop); !strings.HasPrefix(got, "False WrongSet: ") {
		t.Errorf("condition %s", got)
	}
	if o.validation != "Ignore" {
		t.Errorf("the server parses each patch twice: its field validation is %q", o.validation)
	}
}
