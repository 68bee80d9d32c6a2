// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named("x"), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template("nginx:1")}}
}

// A Deployment becomes available, is rolled out anew without ever having too few Pods, and takes
// everything with it when it goes.
func TestDeployment(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		x := deployment(3)
		t.create(x)
		t.settle()
		checkRolledOut(t, get(t, x), 3)

		update(t, x, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
		t.settle()
		checkRolledOut(t, get(t, x), 3)
		for _, pod := range list[corev1.Pod](t) {
			if pod.Spec.Containers[0].Image != "nginx:2" {
				t.Errorf("%s has the image %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		sets := list[appsv1.ReplicaSet](t)
		kept := 0
		for _, set := range sets {
			if set.Annotations[player.HistoryAnnotation] != "" {
				kept++
			}
		}
		if len(sets) != 2 || kept != 1 {
			t.Errorf("%d ReplicaSets, %d of them for a rollback", len(sets), kept)
		}
		for _, entry := range strings.Split(t.trace.String(), "\n") {
			if strings.Contains(entry, " error ") || strings.Contains(entry, "-> 4") {
				t.Error(entry)
			}
		}

		t.delete(x)
		t.settle()
		if n := len(list[corev1.Pod](t)) + len(list[appsv1.ReplicaSet](t)); n != 0 {
			t.Errorf("%d objects are left", n)
		}
	})
}

func checkRolledOut(t *theater, d *appsv1.Deployment, n int32) {
	t.Helper()
	s := d.Status
	got := [...]int32{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas}
	if diff := cmp.Diff([...]int32{n, n, n, n, 0}, got); diff != "" || s.ObservedGeneration != d.Generation {
		t.Errorf("generation %d of %d: %s", s.ObservedGeneration, d.Generation, diff)
	}
	reasons := map[string]string{}
	for _, c := range s.Conditions {
		reasons[string(c.Type)] = string(c.Status) + " " + c.Reason
	}
	want := map[string]string{"Available": "True MinimumReplicasAvailable", "Progressing": "True NewReplicaSetAvailable"}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Error(diff)
	}
}
