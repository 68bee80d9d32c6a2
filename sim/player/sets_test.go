// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim/player"
)

func statefulSet() *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: named("x"), Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(3)), Selector: selector, ServiceName: "x", Template: template("nginx:1"),
		VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{ObjectMeta: named("data"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}},
	}}
}

// images returns the images of the Pods by name.
func images(t *theater) map[string]string {
	m := map[string]string{}
	for _, pod := range list[corev1.Pod](t) {
		m[pod.Name] = pod.Spec.Containers[0].Image
	}
	return m
}

// A StatefulSet has its Pods by ordinal, each with its bound claim. An update stops at the partition,
// and a scaled set keeps its claims.
func TestStatefulSet(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		x := statefulSet()
		t.create(x)
		t.settle()
		first := get(t, x).Status
		if first.ReadyReplicas != 3 || first.CurrentRevision == "" || first.CurrentRevision != first.UpdateRevision {
			t.Errorf("at first: %+v", first)
		}
		claims := list[corev1.PersistentVolumeClaim](t)
		for i, c := range claims {
			if c.Name != fmt.Sprintf("data-x-%d", i) || c.Status.Phase != corev1.ClaimBound {
				t.Errorf("claim %d is %s, %s", i, c.Name, c.Status.Phase)
			}
		}
		update(t, x, func(s *appsv1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = "nginx:2"
			s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(2))}
		})
		t.settle()
		if m := images(t); m["x-1"] != "nginx:1" || m["x-2"] != "nginx:2" {
			t.Errorf("with a partition: %v", m)
		}
		if s := get(t, x).Status; s.UpdatedReplicas != 1 || s.CurrentReplicas != 2 || s.CurrentRevision != first.CurrentRevision {
			t.Errorf("with a partition: %+v", s)
		}
		update(t, x, func(s *appsv1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Partition, s.Spec.Replicas = new(int32(0)), new(int32(2))
		})
		t.settle()
		if m := images(t); len(m) != 2 || m["x-0"] != "nginx:2" || m["x-1"] != "nginx:2" {
			t.Errorf("at the end: %v", m)
		}
		if s := get(t, x).Status; s.CurrentRevision != s.UpdateRevision || s.CurrentRevision == first.CurrentRevision {
			t.Errorf("at the end: %+v", s)
		}
		if n := len(list[corev1.PersistentVolumeClaim](t)); n != 3 {
			t.Errorf("%d claims", n)
		}
	})
}

// A Pod that does not become ready holds the next ones up, unless all are created at once.
func TestStatefulSetOrder(t *testing.T) {
	for policy, want := range map[appsv1.PodManagementPolicyType]int{appsv1.OrderedReadyPodManagement: 1, appsv1.ParallelPodManagement: 3} {
		play(t, player.Defaults(), func(t *theater) {
			x := statefulSet()
			x.Spec.PodManagementPolicy = policy
			x.Spec.Template.Annotations = map[string]string{player.OutcomeAnnotation: string(player.Unready)}
			t.create(x)
			t.settle()
			if n := len(images(t)); n != want {
				t.Errorf("%s: %d Pods, want %d", policy, n, want)
			}
		})
	}
}

// A DaemonSet has a Pod on each Node.
func TestDaemonSet(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		x := &appsv1.DaemonSet{ObjectMeta: named("x"), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template("nginx:1")}}
		t.create(x)
		t.settle()
		if s := get(t, x).Status; s.NumberReady != 1 || s.DesiredNumberScheduled != 1 {
			t.Errorf("without Nodes: %+v", s)
		}
		for _, name := range []string{"a", "b"} {
			node := &corev1.Node{}
			node.Name = name
			t.create(node)
		}
		update(t, x, func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Containers[0].Image = "nginx:2" })
		t.settle()
		if s := get(t, x).Status; s.NumberReady != 2 || s.UpdatedNumberScheduled != 2 || s.NumberUnavailable != 0 {
			t.Errorf("with two Nodes: %+v", s)
		}
		on := map[string]string{}
		for _, pod := range list[corev1.Pod](t) {
			on[pod.Spec.NodeName] = pod.Spec.Containers[0].Image
		}
		if len(on) != 2 || on["a"] != "nginx:2" || on["b"] != "nginx:2" {
			t.Errorf("got %v", on)
		}
	})
}

// A Service leads to the Pods that are ready, and has an address if it is a load balancer.
func TestService(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		service := &corev1.Service{ObjectMeta: named("x"), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}},
		}}
		unready := &corev1.Pod{ObjectMeta: named("y"), Spec: template("nginx:1").Spec}
		unready.Labels = selector.MatchLabels
		unready.Annotations = map[string]string{player.OutcomeAnnotation: string(player.Unready)}
		t.create(service, deployment(2), unready)
		t.settle()
		slices := list[discoveryv1.EndpointSlice](t)
		if len(slices) != 1 {
			t.Fatalf("%d EndpointSlices", len(slices))
		}
		ready := 0
		for _, e := range slices[0].Endpoints {
			if *e.Conditions.Ready {
				ready++
			}
		}
		if ready != 2 || len(slices[0].Endpoints) != 3 || *slices[0].Ports[0].Port != 80 {
			t.Errorf("%d of %d endpoints are ready", ready, len(slices[0].Endpoints))
		}
		if len(get(t, service).Status.LoadBalancer.Ingress) != 1 {
			t.Error("the load balancer has no address")
		}
		service = get(t, service)
		service.Labels = map[string]string{"version": "2"}
		_, path := t.path(service)
		t.ask(http.MethodPut, path, service)
		t.settle()
		//lint:ignore SA1019 clients still read Endpoints
		endpoints := list[corev1.Endpoints](t)[0]
		if slices := list[discoveryv1.EndpointSlice](t); endpoints.Labels["version"] != "2" || slices[0].Labels["version"] != "2" || slices[0].Labels[discoveryv1.LabelServiceName] != "x" {
			t.Errorf("after a change of the labels of the Service: %v and %v", endpoints.Labels, slices[0].Labels)
		}
		t.delete(service)
		t.settle()
		if n := len(list[discoveryv1.EndpointSlice](t)); n != 0 {
			t.Errorf("%d EndpointSlices are left", n)
		}
	})
}

// A set is changed by kind, and an empty one is not the default.
func TestSet(t *testing.T) {
	never := player.Pod(func(*corev1.Pod) player.Outcome { return player.Pending })
	if got := len(player.Defaults().With(never)); got != len(player.Defaults()) {
		t.Errorf("%d players after one was replaced", got)
	}
	if got := len(player.Defaults().Without(&corev1.Pod{}, &corev1.Service{})); got != len(player.Defaults())-2 {
		t.Errorf("%d players without two", got)
	}
	if player.None() == nil || len(player.None()) != 0 {
		t.Error("None is nil, or has players")
	}
	play(t, player.Defaults().With(never), func(t *theater) {
		t.create(deployment(1))
		t.settle()
		if s := get(t, deployment(1)).Status; s.Replicas != 1 || s.ReadyReplicas != 0 {
			t.Errorf("got %+v", s)
		}
	})
}

// The Pods of a StatefulSet pass through the webhook, and one that is refused is created later.
func TestAdmitting(t *testing.T) {
	refusals := 0
	sets := player.StatefulSet().Admitting(func(obj client.Object) error {
		if pod, ok := obj.(*corev1.Pod); ok {
			if refusals++; refusals == 1 {
				return errors.New("no")
			}
			pod.Labels["index"] = pod.Name
		}
		return nil
	})
	play(t, player.Defaults().With(sets), func(t *theater) {
		t.create(statefulSet())
		t.settle()
		pods := list[corev1.Pod](t)
		for _, pod := range pods {
			if pod.Labels["index"] != pod.Name {
				t.Errorf("%s has the labels %v", pod.Name, pod.Labels)
			}
		}
		if len(pods) != 3 || refusals != 4 {
			t.Errorf("%d Pods after %d calls, want 3 after 4", len(pods), refusals)
		}
	})
}

// A Pod that comes while its claim is being deleted waits for the next one. A Pod that runs keeps it.
func TestClaimInDeletion(t *testing.T) {
	play(t, player.Defaults(), func(t *theater) {
		claim := func() *corev1.PersistentVolumeClaim {
			return &corev1.PersistentVolumeClaim{ObjectMeta: named("data"), Spec: statefulSet().Spec.VolumeClaimTemplates[0].Spec}
		}
		pod := func(name string) *corev1.Pod {
			p := &corev1.Pod{ObjectMeta: named(name), Spec: template("nginx:1").Spec}
			p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
			return p
		}
		first, second := pod("first"), pod("second")
		t.create(claim(), first)
		t.settle()
		t.delete(claim())
		t.create(second)
		t.settle()
		if f, s := get(t, first), get(t, second); f.Status.Phase != corev1.PodRunning || s.Spec.NodeName != "" {
			t.Errorf("the first Pod is %s, the second one is on the node %q", f.Status.Phase, s.Spec.NodeName)
		}
		t.delete(first)
		t.settle()
		t.create(claim())
		t.settle()
		if s := get(t, second); s.Status.Phase != corev1.PodRunning {
			t.Errorf("with a new claim, the second Pod is %s", s.Status.Phase)
		}
	})
}
