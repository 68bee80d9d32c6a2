// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

//lint:file-ignore SA1019 clients still read Endpoints

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Service returns the player of Services: a Service with a selector gets an Endpoints object and one
// EndpointSlice with the Pods that it selects, and one of the type LoadBalancer gets an address.
func Service() Player {
	return New(unlessDeleted(playService)).Watching(&corev1.Pod{}, func(s *Stage, pod client.Object) []client.ObjectKey {
		var keys []client.ObjectKey
		for _, service := range s.world.Objects(&corev1.Service{}, pod.GetNamespace()) {
			if selects(service.(*corev1.Service), pod) {
				keys = append(keys, client.ObjectKeyFromObject(service))
			}
		}
		return keys
	})
}

func selects(service *corev1.Service, pod client.Object) bool {
	return len(service.Spec.Selector) > 0 && labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(pod.GetLabels()))
}

func playService(s *Stage, service *corev1.Service) error {
	var errs []error
	if len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName {
		var pods []*corev1.Pod
		for _, pod := range List[*corev1.Pod](s, service.Namespace) {
			if selects(service, pod) && pod.Status.PodIP != "" && !hasEnded(pod) {
				pods = append(pods, pod)
			}
		}
		errs = append(errs, playSlice(s, service, pods), playEndpoints(s, service, pods))
	}
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer {
		service.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	} else if len(service.Status.LoadBalancer.Ingress) == 0 {
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: addressOf(service), IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)}}
	}
	return errors.Join(append(errs, s.UpdateStatus(service))...)
}

// addressOf returns the address of a load balancer. It depends only on the name of its object, so that
// it is the same in each run.
func addressOf(obj client.Object) string {
	n := hashOf(obj.GetNamespace() + "/" + obj.GetName())
	return fmt.Sprintf("198.18.%d.%d", n>>8&0xff, n&0xff) // a network for tests, RFC 2544
}

// playSlice keeps the EndpointSlice of a Service.
func playSlice(s *Stage, service *corev1.Service, pods []*corev1.Pod) error {
	var slice *discoveryv1.EndpointSlice
	if slices := Children[*discoveryv1.EndpointSlice](s, service); len(slices) > 0 {
		slice = slices[0]
	}
	missing := slice == nil
	if missing {
		slice = &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		slice.GenerateName = service.Name + "-"
	}
	slice.Labels = labelsOf(service)
	slice.Labels[discoveryv1.LabelServiceName], slice.Labels[discoveryv1.LabelManagedBy] = service.Name, "endpointslice-controller.k8s.io"
	slice.Endpoints, slice.Ports = nil, nil
	for _, pod := range pods {
		ready, terminating := isReady(pod) && pod.DeletionTimestamp == nil, pod.DeletionTimestamp != nil
		serving := isReady(pod)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Status.PodIP}, NodeName: &pod.Spec.NodeName, TargetRef: targetOf(pod),
			Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &terminating},
		})
	}
	for _, p := range service.Spec.Ports {
		if number := portOf(p, pods); number != 0 {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &number, Protocol: &p.Protocol})
		}
	}
	if missing {
		return s.CreateFor(service, slice)
	}
	return s.Update(slice)
}

// endpointsManagedBy is the label of the Endpoints that the controller of Kubernetes keeps, which
// have no owner reference.
const endpointsManagedBy = "endpoints.kubernetes.io/managed-by"

// playEndpoints keeps the Endpoints of a Service. Unlike the real ones they have an owner reference,
// by which the garbage collector removes them.
func playEndpoints(s *Stage, service *corev1.Service, pods []*corev1.Pod) error {
	endpoints, ok := Get[*corev1.Endpoints](s, service.Namespace, service.Name)
	switch {
	case !ok:
		endpoints = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service.Name, Labels: labelsOf(service)}}
	case endpoints.Labels[endpointsManagedBy] == "endpoint-controller": // of a cluster that was copied
	case !metav1.IsControlledBy(endpoints, service):
		return nil // another one's, or of a Service of this name that is gone
	default:
		endpoints.Labels = labelsOf(service)
	}
	subset := corev1.EndpointSubset{}
	for _, pod := range pods {
		address := corev1.EndpointAddress{IP: pod.Status.PodIP, NodeName: &pod.Spec.NodeName, TargetRef: targetOf(pod)}
		switch {
		case pod.DeletionTimestamp != nil:
		case isReady(pod):
			subset.Addresses = append(subset.Addresses, address)
		default:
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, address)
		}
	}
	for _, p := range service.Spec.Ports {
		if number := portOf(p, pods); number != 0 {
			subset.Ports = append(subset.Ports, corev1.EndpointPort{Name: p.Name, Port: number, Protocol: p.Protocol})
		}
	}
	endpoints.Subsets = nil
	if len(subset.Addresses)+len(subset.NotReadyAddresses) > 0 {
		endpoints.Subsets = []corev1.EndpointSubset{subset}
	}
	if !ok {
		return s.CreateFor(service, endpoints)
	}
	return s.Update(endpoints)
}

// labelsOf returns the labels that the objects of a Service have: its own, and whether it is headless.
func labelsOf(service *corev1.Service) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, service.Labels)
	delete(labels, corev1.IsHeadlessService)
	if service.Spec.ClusterIP == corev1.ClusterIPNone {
		labels[corev1.IsHeadlessService] = ""
	}
	return labels
}

func targetOf(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
}

// portOf returns the number of the port of the Pods that a port of a Service leads to, or 0.
func portOf(p corev1.ServicePort, pods []*corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		if p.TargetPort.IntVal == 0 {
			return p.Port
		}
		return p.TargetPort.IntVal
	}
	for _, pod := range pods {
		for _, c := range pod.Spec.Containers {
			for _, cp := range c.Ports {
				if cp.Name == p.TargetPort.StrVal {
					return cp.ContainerPort
				}
			}
		}
	}
	return 0
}

// Ingress returns the player of Ingresses, which get an address.
func Ingress() Player {
	return New(unlessDeleted(func(s *Stage, ingress *networkingv1.Ingress) error {
		if len(ingress.Status.LoadBalancer.Ingress) > 0 {
			return nil // it keeps the address that the controller of a copied cluster has given it
		}
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: addressOf(ingress)}}
		return s.UpdateStatus(ingress)
	}))
}
