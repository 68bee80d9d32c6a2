// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
	"github.com/ctrlkit/ctrlkit/step/steptest"
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
	req := steptest.NewRequest(t, owner, steptest.WithObjects(foreign))

	first, err := apply.PlanFor(t.Context(), req, parts)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("create   Secret default/password\ncreate   ConfigMap default/same\ncreate   ConfigMap default/edited\ncreate   ConfigMap default/old\n", first.String()); diff != "" {
		t.Error(diff)
	}
	if _, err := parts.Do(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"a":"c"}}`))
	if err := req.Client.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "edited"}}, edit, client.FieldOwner("kubectl-edit")); err != nil {
		t.Fatal(err)
	}
	password, wantOld = "two", false
	for range 2 { // the first one has changed nothing
		plan, err := apply.PlanFor(t.Context(), req, parts)
		if err != nil {
			t.Fatal(err)
		}
		want := `change   Secret default/password
           data.password: "(hidden)" -> "(hidden)"
change   ConfigMap default/edited: data is no longer ours: last written by kubectl-edit
           data.a: "c" -> "b"
create   ConfigMap default/new
refuse   ConfigMap default/foreign: exists, has no owner and is not ours
prune    ConfigMap default/old
1 unchanged
`
		if diff := cmp.Diff(want, plan.String()); diff != "" {
			t.Error(diff)
		}
	}
	data, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"changes":[{"action":"create","object":{"kind":"Secret","namespace":"default","name":"password"}},`; len(data) < len(want) || string(data[:len(want)]) != want {
		t.Errorf("got %s", data)
	}
}

func TestPlanOfAnotherStep(t *testing.T) {
	req := steptest.NewRequest(t, &corev1.ConfigMap{})
	other := step.Workflow[*corev1.ConfigMap]("Other", nil)
	if _, err := apply.PlanFor(t.Context(), req, other); err == nil || err.Error() != `step "Other" is not made by apply.Children: only such steps have a plan` {
		t.Errorf("got %v", err)
	}
}
