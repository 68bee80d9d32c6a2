// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// The annotations of package policy say of an object of a set whether it is written, and whether it
// is deleted: when it leaves the set, and with its owner.
func TestPoliciesOfUsers(t *testing.T) {
	for _, tt := range []struct {
		name, annotations string
		content           string // after the set has changed
		stays             bool   // when it has left the set, and when its owner is deleted
		err               string
	}{
		{"none", `{}`, "k=2", false, ""},
		{"of another package", `{"example.com/reconcile":"skip"}`, "k=2", false, ""},
		{"manage", `{"policy.ctrlkit.dev/reconcile":"manage"}`, "k=2", false, ""},
		{"skip", `{"policy.ctrlkit.dev/reconcile":"Skip"}`, "k=1", true, ""},
		{"detach", `{"policy.ctrlkit.dev/reconcile":"detach-on-delete"}`, "k=2", true, ""},
		{"retain", `{"policy.ctrlkit.dev/reclaim":"retain"}`, "k=2", true, ""},
		{"only observe", `{"policy.ctrlkit.dev/allow":"observe"}`, "k=1", true, ""},
		{"all but update", `{"policy.ctrlkit.dev/allow":"observe, create, delete"}`, "k=1", false, ""},
		{"unknown", `{"policy.ctrlkit.dev/reconcile":"slip"}`, "k=1", true, `annotation policy.ctrlkit.dev/reconcile of the object is "slip": use "manage", "skip"`},
		{"misspelled", `{"policy.ctrlkit.dev/reconsile":"skip"}`, "k=1", true, `(did you mean "reconcile"?)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			value, wanted := "1", true
			o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
				if wanted {
					set.Add(newConfigMap("a", "k", value), apply.Unowned)
				}
			}, apply.Tracks(&corev1.ConfigMap{}))
			o.mustSettle(shop)
			o.patch(newConfigMap("a"), `{"metadata":{"annotations":`+tt.annotations+`}}`)
			value = "2"
			err := o.settle(shop)
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !strings.Contains(o.condition(shop), "UnknownPolicy")) {
				t.Errorf("error %v, condition %s, want %q", err, o.condition(shop), tt.err)
			}
			if got := o.configMap("a"); got != tt.content {
				t.Errorf("content %s, want %s", got, tt.content)
			}
			wanted = false
			o.mustSettle(shop)
			if got := o.get(newConfigMap("a"), "a"); got != tt.stays {
				t.Errorf("it has left the set, and is there: %v, want %v", got, tt.stays)
			}
			o.delete(shop)
			o.settle(shop)
			if got := o.get(newConfigMap("a"), "a"); got != tt.stays || o.get(&Shop{}, "shop") {
				t.Errorf("its owner is deleted, and it is there: %v, want %v", got, tt.stays)
			}
		})
	}
}

// What the set itself annotates is for the operator of the object: the set writes and deletes it.
// A user who sets something else than the set decides.
func TestPoliciesThatTheSetApplies(t *testing.T) {
	value, wanted := "1", true
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		if wanted {
			cm := newConfigMap("a", "k", value)
			cm.Annotations = map[string]string{policy.ReconcileAnnotation: "detach-on-delete", policy.ReclaimAnnotation: "retain"}
			set.Add(cm)
		}
	}, apply.Owns(&corev1.ConfigMap{}))
	o.mustSettle(shop)
	value = "2"
	o.mustSettle(shop)
	if got := o.configMap("a"); got != "k=2" {
		t.Errorf("content %s", got)
	}
	o.patch(newConfigMap("a"), `{"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":"skip"}}}`)
	value = "3"
	o.mustSettle(shop)
	if got := o.configMap("a"); got != "k=2" {
		t.Errorf("content %s although a user has it skipped", got)
	}
	o.patch(newConfigMap("a"), `{"metadata":{"annotations":{"policy.ctrlkit.dev/reconcile":null}}}`)
	o.mustSettle(shop)
	wanted = false
	o.mustSettle(shop)
	if o.get(newConfigMap("a"), "a") {
		t.Error("it has left the set, and is there")
	}
}

// What another client applies on the server side is a user's, too.
func TestPoliciesThatAUserApplies(t *testing.T) {
	value := "1"
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a", "k", value)) }, apply.Owns(&corev1.ConfigMap{}))
	o.mustSettle(shop)
	applied := unstructuredFrom(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
		"namespace": "default", "name": "a", "annotations": map[string]any{policy.ReconcileAnnotation: "skip"},
	}})
	must(t, o.client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("kubectl")))
	value = "2"
	o.mustSettle(shop)
	if got := o.configMap("a"); got != "k=1" {
		t.Errorf("content %s although a user has it skipped", got)
	}
}

// What may not be deleted is not replaced.
func TestReplaceOfWhatIsRetained(t *testing.T) {
	image := "busybox:1"
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newJob("j", image), apply.NoWait, apply.Replace) }, apply.Owns(&batchv1.Job{}))
	o.mustSettle(shop)
	first := newJob("j", "")
	o.get(first, "j")
	o.patch(newJob("j", ""), `{"metadata":{"annotations":{"policy.ctrlkit.dev/reclaim":"retain"}}}`)
	image = "busybox:2"
	if err := o.settle(shop); err == nil || !strings.Contains(o.condition(shop), "ImmutableField") {
		t.Errorf("error %v, condition %s", err, o.condition(shop))
	}
	o.patch(newJob("j", ""), `{"metadata":{"annotations":{"policy.ctrlkit.dev/reclaim":"delete"}}}`)
	o.mustSettle(shop)
	second := newJob("j", "")
	if !o.get(second, "j") || second.UID == first.UID {
		t.Error("not replaced although it may be deleted")
	}
}

// A plan changes nothing that its users let be skipped or retained, and refuses what is unknown.
func TestPlanOfPoliciesOfUsers(t *testing.T) {
	value := "1"
	parts := apply.Children("Parts", func(_ context.Context, _ *step.Request[*corev1.ReplicationController], want *apply.Set) error {
		want.Add(newConfigMap("skipped", "k", value), newConfigMap("unknown", "k", value))
		if value == "1" {
			want.Add(newConfigMap("retained"), newConfigMap("gone"))
		}
		return nil
	}, apply.Owns(&corev1.ConfigMap{}))
	req := ctrlkittest.NewRequest(t, &corev1.ReplicationController{})
	if err := parts.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for name, annotation := range map[string]string{
		"skipped": `"policy.ctrlkit.dev/reconcile":"skip"`, "unknown": `"policy.ctrlkit.dev/reconcile":"x"`, "retained": `"policy.ctrlkit.dev/reclaim":"retain"`,
	} {
		cm := newConfigMap(name)
		cm.Namespace = "default"
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{`+annotation+`}}}`))
		must(t, req.Client.Patch(t.Context(), cm, patch, client.FieldOwner("kubectl-annotate")))
	}
	value = "2"
	plan, err := apply.PlanFor(t.Context(), req, parts)
	must(t, err)
	want := `refuse   ConfigMap default/unknown: annotation policy.ctrlkit.dev/reconcile of the object is "x": use "manage", "skip" or "detach-on-delete"
wait     ConfigMap default/gone: it is pruned when all objects of the set are written
1 unchanged
`
	if diff := cmp.Diff(want, plan.String()); diff != "" {
		t.Error(diff)
	}
}
