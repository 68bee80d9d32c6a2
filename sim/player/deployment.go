// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package player

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// revisionAnnotation has the number of the revision of a Deployment.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// HistoryAnnotation marks what is kept only for a rollback: ReplicaSets without replicas and old
// ControllerRevisions. They depend on the history of an object, so worlds are compared without
// them.
const HistoryAnnotation = cluster.History

// Deployment returns the player of Deployments: it makes a ReplicaSet for each template, replaces the
// old ones as the strategy says, and sets the conditions Available and Progressing. It adopts the
// ReplicaSets that match its selector and have no controller. When the number of replicas changes
// during a rollout, it does not scale the ReplicaSets in proportion.
func Deployment() Player {
	return New(unlessDeleted(playDeployment)).Watching(&appsv1.ReplicaSet{}, adopters(func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector }))
}

// rollout is one call for a Deployment.
type rollout struct {
	stage *Stage
	d     *appsv1.Deployment
	sets  []*appsv1.ReplicaSet // all, in the order of their revisions
	now   *appsv1.ReplicaSet   // of the current template; nil if there is none
	old   []*appsv1.ReplicaSet // the others
}

func playDeployment(s *Stage, d *appsv1.Deployment) error {
	if err := (claim[*appsv1.ReplicaSet]{selector: d.Spec.Selector}).make(s, d); err != nil {
		return err
	}
	r := &rollout{stage: s, d: d}
	r.find()
	err := errors.Join(r.roll(), r.keepHistory())
	r.find()
	r.setStatus()
	return errors.Join(err, s.UpdateStatus(r.d))
}

// find finds the ReplicaSets.
func (r *rollout) find() {
	r.sets, r.now, r.old = Children[*appsv1.ReplicaSet](r.stage, r.d), nil, nil
	slices.SortStableFunc(r.sets, func(a, b *appsv1.ReplicaSet) int { return cmp.Compare(revisionOf(a), revisionOf(b)) })
	for _, set := range r.sets {
		switch {
		case set.DeletionTimestamp != nil:
		case r.now == nil && isOfTemplate(set.Labels[appsv1.DefaultDeploymentUniqueLabelKey], &set.Spec.Template, &r.d.Spec.Template):
			r.now = set
		default:
			r.old = append(r.old, set)
		}
	}
}

func revisionOf(obj metav1.Object) int {
	n, err := strconv.Atoi(obj.GetAnnotations()[revisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// roll does the next step of a rollout.
func (r *rollout) roll() error {
	want := ptr.Deref(r.d.Spec.Replicas, 1)
	if r.d.Spec.Paused {
		if r.now != nil && sum(r.old, specReplicas) == 0 {
			return r.scale(r.now, want)
		}
		return nil
	}
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return r.recreate(want)
	}
	surge, unavailable, err := r.limits(want)
	if err != nil {
		return err
	}
	target := min(want, max(0, want+surge-sum(r.old, specReplicas)))
	if r.now != nil {
		target = max(target, min(want, specReplicas(r.now)))
	}
	if err := r.ensure(target); err != nil {
		return err
	}
	// The number of old ones that can be removed: first what is not available anyway.
	removable := sum(r.old, specReplicas) + specReplicas(r.now) - (want - unavailable) - (specReplicas(r.now) - r.now.Status.AvailableReplicas)
	for _, available := range []bool{false, true} {
		for _, set := range r.old {
			n := specReplicas(set) - set.Status.AvailableReplicas
			if available {
				n = min(specReplicas(set), removable)
			}
			if n <= 0 {
				continue
			}
			n = min(n, specReplicas(set))
			removable -= n
			if err := r.scale(set, specReplicas(set)-n); err != nil {
				return err
			}
		}
	}
	return nil
}

// recreate removes the old Pods before it creates new ones.
func (r *rollout) recreate(want int32) error {
	waits := false
	for _, set := range r.old {
		if err := r.scale(set, 0); err != nil {
			return err
		}
		for _, pod := range Children[*corev1.Pod](r.stage, set) {
			waits = waits || !hasEnded(pod)
		}
	}
	if waits {
		r.stage.After(podEnds) // the end of a Pod calls only the player of its ReplicaSet
		return nil
	}
	return r.ensure(want)
}

// limits returns how many replicas more or fewer than wanted there may be during a rollout.
func (r *rollout) limits(want int32) (surge, unavailable int32, err error) {
	rolling := ptr.Deref(r.d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	quarter := intstr.FromString("25%")
	up, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(rolling.MaxSurge, &quarter), int(want), true)
	if err != nil {
		return 0, 0, fmt.Errorf("maxSurge of %s: %w", describe(r.d), err)
	}
	down, err := intstr.GetScaledValueFromIntOrPercent(cmp.Or(rolling.MaxUnavailable, &quarter), int(want), false)
	if err != nil {
		return 0, 0, fmt.Errorf("maxUnavailable of %s: %w", describe(r.d), err)
	}
	if up == 0 && down == 0 {
		down = 1 // otherwise nothing could ever be replaced
	}
	return int32(up), int32(down), nil
}

// ensure creates or scales the ReplicaSet of the current template.
func (r *rollout) ensure(replicas int32) error {
	if r.now != nil {
		return r.scale(r.now, replicas)
	}
	hash := templateHash(&r.d.Spec.Template)
	set := &appsv1.ReplicaSet{}
	set.Name, set.GenerateName = r.d.Name+"-"+hash, r.d.Name+"-" // comparisons leave the hash out
	set.Annotations = map[string]string{revisionAnnotation: strconv.Itoa(r.lastRevision() + 1)}
	set.Spec = appsv1.ReplicaSetSpec{
		Replicas: &replicas, MinReadySeconds: r.d.Spec.MinReadySeconds, Selector: r.d.Spec.Selector.DeepCopy(), Template: *r.d.Spec.Template.DeepCopy(),
	}
	if set.Spec.Template.Labels == nil {
		set.Spec.Template.Labels = map[string]string{}
	}
	set.Spec.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	set.Labels = podFrom(&set.Spec.Template).Labels
	metav1.AddLabelToSelector(set.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	if err := r.stage.CreateFor(r.d, set); err != nil {
		return err
	}
	r.find()
	if r.now == nil {
		return fmt.Errorf("%s is not there after its creation", describe(set))
	}
	return nil
}

func (r *rollout) lastRevision() int {
	if len(r.sets) == 0 {
		return 0
	}
	return revisionOf(r.sets[len(r.sets)-1])
}

func (r *rollout) scale(set *appsv1.ReplicaSet, replicas int32) error {
	set.Spec.Replicas = &replicas
	if set == r.now {
		set.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
	}
	return r.stage.Update(set)
}

// keepHistory marks and limits the old ReplicaSets, and numbers the current one.
func (r *rollout) keepHistory() error {
	r.find()
	var errs []error
	for i, set := range r.old {
		if specReplicas(set) > 0 || set.Status.Replicas > 0 {
			continue
		}
		if len(r.old)-i > int(ptr.Deref(r.d.Spec.RevisionHistoryLimit, 10)) {
			errs = append(errs, r.stage.Delete(set))
			continue
		}
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, HistoryAnnotation, "true")
		errs = append(errs, r.stage.Update(set))
	}
	if r.now == nil {
		return errors.Join(errs...)
	}
	if last := r.lastRevision(); revisionOf(r.now) < last {
		metav1.SetMetaDataAnnotation(&r.now.ObjectMeta, revisionAnnotation, strconv.Itoa(last+1)) // a rollback
	}
	delete(r.now.Annotations, HistoryAnnotation)
	errs = append(errs, r.stage.Update(r.now))
	// It is written with the status, which makes no new generation.
	metav1.SetMetaDataAnnotation(&r.d.ObjectMeta, revisionAnnotation, r.now.Annotations[revisionAnnotation])
	return errors.Join(errs...)
}

// setStatus counts the replicas and sets the conditions.
func (r *rollout) setStatus() {
	want := ptr.Deref(r.d.Spec.Replicas, 1)
	before := r.d.Status.DeepCopy()
	status := &r.d.Status
	status.ObservedGeneration = r.d.Generation
	all := r.old
	status.UpdatedReplicas = 0
	if r.now != nil {
		all = append(slices.Clone(r.old), r.now)
		status.UpdatedReplicas = r.now.Status.Replicas
	}
	status.Replicas = sum(all, func(s *appsv1.ReplicaSet) int32 { return s.Status.Replicas })
	status.ReadyReplicas = sum(all, func(s *appsv1.ReplicaSet) int32 { return s.Status.ReadyReplicas })
	status.AvailableReplicas = sum(all, func(s *appsv1.ReplicaSet) int32 { return s.Status.AvailableReplicas })
	status.UnavailableReplicas = max(0, sum(all, specReplicas)-status.AvailableReplicas)
	_, unavailable, err := r.limits(want)
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		unavailable = 0
	}
	if err == nil && status.AvailableReplicas >= want-unavailable {
		r.condition(appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.", false)
	} else {
		r.condition(appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", false)
	}
	r.setProgress(before, want)
}

// setProgress sets the condition Progressing.
func (r *rollout) setProgress(before *appsv1.DeploymentStatus, want int32) {
	status := &r.d.Status
	complete := status.UpdatedReplicas == want && status.Replicas == want && status.AvailableReplicas == want
	name := ""
	if r.now != nil {
		name = r.now.Name
	}
	progressed := status.UpdatedReplicas > before.UpdatedReplicas || status.ReadyReplicas > before.ReadyReplicas ||
		status.AvailableReplicas > before.AvailableReplicas || status.Replicas < before.Replicas
	switch {
	case r.d.Spec.Paused:
		r.condition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused", false)
	case complete:
		r.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetAvailable", fmt.Sprintf("ReplicaSet %q has successfully progressed.", name), false)
	case !progressed && r.isLate():
		r.condition(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", fmt.Sprintf("ReplicaSet %q has timed out progressing.", name), false)
	default:
		r.condition(appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", name), progressed)
	}
}

// isLate reports whether the rollout has not progressed within its deadline. It asks for another call
// when it might not have.
func (r *rollout) isLate() bool {
	for _, c := range r.d.Status.Conditions {
		if c.Type != appsv1.DeploymentProgressing {
			continue
		}
		switch c.Reason {
		case "ProgressDeadlineExceeded":
			return true
		case "ReplicaSetUpdated":
			return r.stage.until(c.LastUpdateTime.Add(time.Duration(ptr.Deref(r.d.Spec.ProgressDeadlineSeconds, 600)) * time.Second))
		}
	}
	r.stage.After(time.Duration(ptr.Deref(r.d.Spec.ProgressDeadlineSeconds, 600)) * time.Second)
	return false
}

// condition sets a condition. renew moves the time of its last update in any case.
func (r *rollout) condition(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string, renew bool) {
	now := metav1.Now()
	want := appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	for i, c := range r.d.Status.Conditions {
		if c.Type != kind {
			continue
		}
		if c.Status == status {
			want.LastTransitionTime = c.LastTransitionTime
			if c.Reason == reason && c.Message == message && !renew {
				return
			}
		}
		r.d.Status.Conditions[i] = want
		return
	}
	r.d.Status.Conditions = append(r.d.Status.Conditions, want)
}

func specReplicas(set *appsv1.ReplicaSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }

func sum(sets []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	n := int32(0)
	for _, set := range sets {
		n += of(set)
	}
	return n
}
