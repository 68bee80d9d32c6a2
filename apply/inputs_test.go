// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/apply"
)

// Pods are replaced when the content of an input changes, and not when only its metadata does.
func TestRestartOn(t *testing.T) {
	var input *corev1.ConfigMap
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(newDeployment("web", 1), apply.NoWait, apply.RestartOn(input))
		set.Add(&batchv1.CronJob{ObjectMeta: newConfigMap("night").ObjectMeta, Spec: batchv1.CronJobSpec{
			Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: newJob("x", "busybox:1").Spec},
		}}, apply.NoWait, apply.RestartOn(input))
	}, apply.Owns(&appsv1.Deployment{}, &batchv1.CronJob{}))
	hash := func() string {
		t.Helper()
		o.mustSettle(shop)
		web, night := newDeployment("web", 1), &batchv1.CronJob{}
		o.get(web, "web")
		o.get(night, "night")
		got := web.Spec.Template.Annotations["apply.ctrlkit.dev/inputs"]
		if len(got) != 16 || got != night.Spec.JobTemplate.Spec.Template.Annotations["apply.ctrlkit.dev/inputs"] {
			t.Fatalf("the hashes are %q and %v", got, night.Spec.JobTemplate.Spec.Template.Annotations)
		}
		return got
	}
	none := hash()
	input = newConfigMap("input", "a", "b")
	first := hash()
	input.Labels, input.ResourceVersion, input.UID = map[string]string{"new": "label"}, "7", "8"
	if again := hash(); first == none || again != first {
		t.Errorf("hashes %s without, %s with, and %s with other metadata", none, first, again)
	}
	input.Data["a"] = "c"
	if hash() == first {
		t.Error("another content has the same hash")
	}

	wrong, other := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a"), apply.RestartOn(input)) }, apply.Owns(&corev1.ConfigMap{}))
	if err := wrong.settle(other); err == nil || !strings.Contains(err.Error(), "it has no Pod template, which apply.RestartOn needs") {
		t.Errorf("error %v", err)
	}
}

func TestChildName(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, tt := range []struct {
		parts []string
		want  string
	}{
		{[]string{"shop", "web"}, "shop-web"},
		{[]string{"shop.example.com", "web"}, "shop-example-com-web-"},
		{[]string{long, "web"}, strings.Repeat("x", 54) + "-"},
		{[]string{"Shop_A"}, "shop-a-"},
		{[]string{"..."}, ""},
	} {
		got := apply.ChildName(tt.parts...)
		if !strings.HasPrefix(got, tt.want) || len(validation.IsDNS1123Label(got)) > 0 {
			t.Errorf("%v: %s, want %s", tt.parts, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.String(), 1, 3).Draw(t, "parts")
		if got := apply.ChildName(parts...); len(validation.IsDNS1123Label(got)) > 0 || got != apply.ChildName(parts...) {
			t.Fatalf("%q of %q", got, parts)
		}
	})
	if apply.ChildName(long, "web") == apply.ChildName(long, "db") {
		t.Error("two names are the same")
	}
}
