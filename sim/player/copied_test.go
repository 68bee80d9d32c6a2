// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"encoding/json"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

// The controllers of a cluster that was copied hash templates in another way than the players: a
// change that leaves the template alone replaces no Pod.
func TestRevisionsOfAnotherHash(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		d, set := deployment(3), statefulSet()
		set.Name, set.Spec.VolumeClaimTemplates = "y", nil
		t.create(d, set)

		made := template("nginx:1")
		labels := map[string]string{"app": "x", appsv1.DefaultDeploymentUniqueLabelKey: "other"}
		made.Labels = labels
		t.create(&appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x-other", Labels: labels, OwnerReferences: ownedBy(get(t, d), "Deployment")},
			Spec:       appsv1.ReplicaSetSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: made},
		})
		data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": get(t, set).Spec.Template}})
		if err != nil {
			t.Fatal(err)
		}
		t.create(&appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "y-other", OwnerReferences: ownedBy(get(t, set), "StatefulSet"),
				Labels: map[string]string{"app": "x", "controller.kubernetes.io/hash": "other"},
			},
			Revision: 1, Data: runtime.RawExtension{Raw: data},
		})
		t.settle()
		if sets := list[appsv1.ReplicaSet](t); len(sets) != 1 || sets[0].Status.ReadyReplicas != 3 {
			t.Errorf("%d ReplicaSets, want the one that was there", len(sets))
		}
		if revisions := list[appsv1.ControllerRevision](t); len(revisions) != 1 || get(t, set).Status.CurrentRevision != "y-other" {
			t.Errorf("%d revisions, the current one is %s, want the one that was there", len(revisions), get(t, set).Status.CurrentRevision)
		}

		update(t, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
		update(t, set, func(s *appsv1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
		t.settle()
		for name, image := range images(t) {
			if image != "nginx:2" {
				t.Errorf("after a change of the template, %s has the image %s", name, image)
			}
		}
	})
}

func ownedBy(owner client.Object, kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}}
}

// A load balancer keeps the address that it has, and Endpoints of the controller of Kubernetes are
// kept although nothing owns them.
func TestServicesThatWereCopied(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		service := &corev1.Service{ObjectMeta: named("x"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		t.create(service)
		service = get(t, service)
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1", IPMode: new(corev1.LoadBalancerIPModeVIP)}}
		_, path := t.path(service)
		t.ask(http.MethodPut, path+"/status", service)
		//lint:ignore SA1019 clients still read Endpoints
		endpoints := &corev1.Endpoints{ObjectMeta: named("x")}
		endpoints.Labels = map[string]string{"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
		t.create(endpoints, deployment(2))
		t.settle()
		if got := get(t, service).Status.LoadBalancer.Ingress; len(got) != 1 || got[0].IP != "192.0.2.1" {
			t.Errorf("the address is %v, want the one that it had", got)
		}
		if got := get(t, endpoints).Subsets; len(got) != 1 || len(got[0].Addresses) != 2 {
			t.Errorf("the Endpoints are %v, want two addresses", got)
		}
	})
}
