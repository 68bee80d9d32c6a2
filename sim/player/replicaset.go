// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"errors"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// ReplicaSet returns the player of ReplicaSets: it creates and deletes Pods, and counts them. It adopts
// the Pods that match its selector and have no controller.
func ReplicaSet() Player {
	return adoptingPods(New(unlessDeleted(playReplicaSet)), func(set *appsv1.ReplicaSet) *metav1.LabelSelector { return set.Spec.Selector })
}

func playReplicaSet(s *Stage, set *appsv1.ReplicaSet) error {
	claimed := claim[*corev1.Pod]{selector: set.Spec.Selector, ignores: func(pod *corev1.Pod) bool { return !isActive(pod) }}
	if err := claimed.make(s, set); err != nil {
		return err
	}
	pods := activePods(Children[*corev1.Pod](s, set))
	want := int(ptr.Deref(set.Spec.Replicas, 1))
	var errs []error
	for range want - len(pods) {
		pod := podFrom(&set.Spec.Template)
		pod.GenerateName = set.Name + "-"
		errs = append(errs, s.CreateFor(set, pod))
	}
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(worth(b), worth(a)) })
	for _, surplus := range pods[min(want, len(pods)):] {
		errs = append(errs, s.Delete(surplus))
	}
	pods = activePods(Children[*corev1.Pod](s, set))
	status := &set.Status
	status.ObservedGeneration = set.Generation
	status.Replicas, status.FullyLabeledReplicas = int32(len(pods)), int32(len(pods))
	status.ReadyReplicas = count(pods, isReady)
	status.AvailableReplicas = countAvailable(s, pods, set.Spec.MinReadySeconds)
	errs = append(errs, s.UpdateStatus(set))
	return errors.Join(errs...)
}

// podFrom returns a Pod that is made of a template.
func podFrom(template *corev1.PodTemplateSpec) *corev1.Pod {
	t := template.DeepCopy()
	pod := &corev1.Pod{Spec: t.Spec}
	pod.Labels, pod.Annotations, pod.Finalizers = t.Labels, t.Annotations, t.Finalizers
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

// activePods returns the Pods that have not ended and are not being deleted.
func activePods(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return !isActive(p) })
}

func isActive(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !hasEnded(pod) }

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isReady(pod *corev1.Pod) bool { return isPodConditionTrue(pod, corev1.PodReady) }

// worth orders Pods by how much would be missing without them.
func worth(pod *corev1.Pod) int {
	switch {
	case isReady(pod):
		return 2
	case pod.Spec.NodeName != "":
		return 1
	}
	return 0
}

func count(pods []*corev1.Pod, counts func(*corev1.Pod) bool) int32 {
	n := int32(0)
	for _, p := range pods {
		if counts(p) {
			n++
		}
	}
	return n
}

// countAvailable returns how many Pods have been ready for some seconds. It asks for another call
// when the next one will have been.
func countAvailable(s *Stage, pods []*corev1.Pod, minReadySeconds int32) int32 {
	return count(pods, func(p *corev1.Pod) bool { return isAvailable(s, p, minReadySeconds) })
}

func isAvailable(s *Stage, pod *corev1.Pod, minReadySeconds int32) bool {
	if !isReady(pod) {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && minReadySeconds > 0 {
			return s.until(c.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second))
		}
	}
	return true
}
