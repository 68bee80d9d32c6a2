// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatefulSet returns the player of StatefulSets: it creates, updates and deletes Pods one after the
// other, or at once if the policy is Parallel, with their PersistentVolumeClaims, and keeps
// ControllerRevisions. It adopts the Pods that match its selector, have its name with an ordinal, and
// have no controller. It replaces one Pod at a time, whatever maxUnavailable is.
func StatefulSet() Player {
	return adoptingPods(New(unlessDeleted(playStatefulSet)), func(set *appsv1.StatefulSet) *metav1.LabelSelector { return set.Spec.Selector })
}

// replicas is one call for a StatefulSet.
type replicas struct {
	stage     *Stage
	set       *appsv1.StatefulSet
	current   *appsv1.ControllerRevision // that Pods below the partition have
	update    *appsv1.ControllerRevision // of the current template
	revisions []*appsv1.ControllerRevision
	pods      map[int]*corev1.Pod // by ordinal
}

func playStatefulSet(s *Stage, set *appsv1.StatefulSet) error {
	r := &replicas{stage: s, set: set}
	update, others, err := ensureRevision(s, set, set.Spec.Selector, &set.Spec.Template)
	if err != nil {
		return err
	}
	r.update, r.current, r.revisions = update, update, others
	for _, other := range others {
		if other.Name == set.Status.CurrentRevision {
			r.current = other
		}
	}
	if err := (claim[*corev1.Pod]{selector: set.Spec.Selector, fits: r.fits}).make(s, set); err != nil {
		return err
	}
	r.find()
	err = r.step()
	r.find()
	r.setStatus()
	if r.current != r.update {
		r.revisions = slices.DeleteFunc(r.revisions, func(other *appsv1.ControllerRevision) bool { return other == r.current })
	}
	return errors.Join(err, keepRevisions(s, r.revisions, int(ptr.Deref(set.Spec.RevisionHistoryLimit, 10))), s.UpdateStatus(set))
}

func (r *replicas) find() {
	r.pods = map[int]*corev1.Pod{}
	for _, pod := range Children[*corev1.Pod](r.stage, r.set) {
		if n, ok := r.ordinalOf(pod); ok {
			r.pods[n] = pod
		}
	}
}

// fits reports whether a Pod has the name of one of the set.
func (r *replicas) fits(pod *corev1.Pod) bool {
	_, ok := r.ordinalOf(pod)
	return ok
}

// ordinalOf returns the ordinal that the name of a Pod ends in, and reports whether it has one.
func (r *replicas) ordinalOf(pod *corev1.Pod) (int, bool) {
	suffix, found := strings.CutPrefix(pod.Name, r.set.Name+"-")
	n, err := strconv.Atoi(suffix)
	return n, found && err == nil && strconv.Itoa(n) == suffix && n >= 0
}

// first returns the lowest ordinal, and end the one after the highest.
func (r *replicas) first() int {
	if r.set.Spec.Ordinals == nil {
		return 0
	}
	return int(r.set.Spec.Ordinals.Start)
}

func (r *replicas) end() int { return r.first() + int(ptr.Deref(r.set.Spec.Replicas, 1)) }

// step creates, deletes and replaces Pods, as far as their order allows it now.
func (r *replicas) step() error {
	parallel := r.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
	healthy := true
	for n := r.first(); n < r.end(); n++ {
		pod := r.pods[n]
		switch {
		case pod == nil:
			if err := r.create(n); err != nil {
				return err
			}
		case hasEnded(pod) && pod.DeletionTimestamp == nil:
			if err := r.stage.Delete(pod); err != nil {
				return err
			}
		case pod.DeletionTimestamp == nil && isAvailable(r.stage, pod, r.set.Spec.MinReadySeconds):
			if err := r.identify(n, pod); err != nil {
				return err
			}
			continue
		}
		healthy = false
		if !parallel {
			return nil // the next ones wait for this one
		}
	}
	for _, n := range slices.Backward(slices.Sorted(maps.Keys(r.pods))) { // those too many, the highest first
		if n >= r.first() && n < r.end() {
			continue
		}
		if err := r.stage.Delete(r.pods[n]); err != nil {
			return err
		}
		if !parallel {
			return nil
		}
	}
	if r.set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || !healthy && !parallel {
		return nil
	}
	return r.replace()
}

// replace deletes the Pod with the highest ordinal that has an old template, if those above it are
// healthy.
func (r *replicas) replace() error {
	for n := r.end() - 1; n >= r.first()+r.partition(); n-- {
		pod := r.pods[n]
		if pod == nil || pod.DeletionTimestamp != nil {
			return nil
		}
		if revisionName(pod) != r.update.Name {
			return r.stage.Delete(pod)
		}
		if !isAvailable(r.stage, pod, r.set.Spec.MinReadySeconds) {
			return nil
		}
	}
	return nil
}

func (r *replicas) partition() int {
	if rolling := r.set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return int(ptr.Deref(rolling.Partition, 0))
	}
	return 0
}

func revisionName(pod *corev1.Pod) string { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] }

func ofRevision(name string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return revisionName(pod) == name }
}

// create creates the Pod with an ordinal, and its PersistentVolumeClaims.
func (r *replicas) create(n int) error {
	revision := r.update
	if n < r.first()+r.partition() {
		revision = r.current
	}
	template, err := templateOf(revision)
	if err != nil {
		return err
	}
	pod := podFrom(template)
	pod.Name = r.set.Name + "-" + strconv.Itoa(n)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = revision.Name
	setIdentity(n, pod)
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, r.set.Spec.ServiceName
	for i := range r.set.Spec.VolumeClaimTemplates {
		claim := r.set.Spec.VolumeClaimTemplates[i].DeepCopy()
		volume := claim.Name
		claim.Name = volume + "-" + pod.Name
		if err := r.ensureClaim(claim); err != nil {
			return err
		}
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume })
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
		}})
	}
	return r.stage.CreateFor(r.set, pod)
}

// identify gives a Pod that was adopted the labels of one that was created.
func (r *replicas) identify(n int, pod *corev1.Pod) error {
	if pod.Labels[appsv1.StatefulSetPodNameLabel] == pod.Name {
		return nil
	}
	setIdentity(n, pod)
	return r.stage.Update(pod)
}

func setIdentity(n int, pod *corev1.Pod) {
	pod.Labels[appsv1.StatefulSetPodNameLabel] = pod.Name
	pod.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
}

// ensureClaim creates a PersistentVolumeClaim, unless there is one of its name. It stays when the set
// is gone, unless the set says otherwise.
func (r *replicas) ensureClaim(claim *corev1.PersistentVolumeClaim) error {
	claim.Namespace = r.set.Namespace
	if existing, ok := Get[*corev1.PersistentVolumeClaim](r.stage, claim.Namespace, claim.Name); ok {
		if existing.DeletionTimestamp != nil {
			return fmt.Errorf("%s is being deleted", describe(existing))
		}
		return nil
	}
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, ptr.Deref(r.set.Spec.Selector, metav1.LabelSelector{}).MatchLabels)
	policy := r.set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return r.stage.CreateFor(r.set, claim)
	}
	return r.stage.Create(claim)
}

// setStatus counts the Pods, and makes the new revision the current one when all have it.
func (r *replicas) setStatus() {
	status := &r.set.Status
	*status = appsv1.StatefulSetStatus{
		ObservedGeneration: r.set.Generation, Conditions: status.Conditions, CollisionCount: ptr.To[int32](0), Replicas: int32(len(r.pods)),
	}
	var pods []*corev1.Pod
	for _, pod := range r.pods {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	status.CurrentReplicas, status.UpdatedReplicas = count(pods, ofRevision(r.current.Name)), count(pods, ofRevision(r.update.Name))
	status.ReadyReplicas, status.AvailableReplicas = count(pods, isReady), countAvailable(r.stage, pods, r.set.Spec.MinReadySeconds)
	want := ptr.Deref(r.set.Spec.Replicas, 1)
	if status.UpdatedReplicas == want && status.Replicas == want && status.ReadyReplicas == want {
		if r.current != r.update {
			r.revisions = append(r.revisions, r.current)
			slices.SortFunc(r.revisions, func(a, b *appsv1.ControllerRevision) int { return int(a.Revision - b.Revision) })
			r.revisions = slices.CompactFunc(r.revisions, func(a, b *appsv1.ControllerRevision) bool { return a.Name == b.Name })
		}
		r.current, status.CurrentReplicas = r.update, want
	}
	status.CurrentRevision, status.UpdateRevision = r.current.Name, r.update.Name
}

// PersistentVolumeClaim returns the player of PersistentVolumeClaims: a claim is bound, to a volume
// for which there is no object, and grows when it is changed. When a claim is being deleted, it is
// held as long as a Pod uses it.
func PersistentVolumeClaim() Player {
	return New(playClaim).Watching(&corev1.Pod{}, func(_ *Stage, pod client.Object) []client.ObjectKey {
		if pod.GetDeletionTimestamp() == nil {
			return nil
		}
		var keys []client.ObjectKey
		for _, name := range claimsOf(pod.(*corev1.Pod)) {
			keys = append(keys, client.ObjectKey{Namespace: pod.GetNamespace(), Name: name})
		}
		return keys
	})
}

// protection is the finalizer with which the server keeps a claim that is in use.
const protection = "kubernetes.io/pvc-protection"

func playClaim(s *Stage, claim *corev1.PersistentVolumeClaim) error {
	if claim.DeletionTimestamp != nil {
		if len(podsOfClaim(s, claim)) > 0 || !slices.Contains(claim.Finalizers, protection) {
			return nil
		}
		claim.Finalizers = slices.DeleteFunc(claim.Finalizers, func(f string) bool { return f == protection })
		return s.Update(claim)
	}
	if claim.Spec.VolumeName == "" {
		claim.Spec.VolumeName = "pvc-" + string(claim.UID)
		return s.Update(claim) // which calls the player again
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]}
	return s.UpdateStatus(claim)
}
