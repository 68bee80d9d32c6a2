// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/sim"
)

// played is a right operator that keeps one child for each Widget and is ready when the child is:
// what makes the child ready is the player of its kind.
type played struct {
	name  string
	child client.Object // of the kind
	// declare writes into a child what the operator wants. Only a new one has no resource version.
	declare func(w *Widget, child client.Object)
	ready   func(child client.Object) bool
}

// playedTwins returns an operator for each kind that a player plays.
func playedTwins() []played { return append(playedWorkloads(), playedOthers()...) }

func playedWorkloads() []played {
	return []played{
		{"deployment", &appsv1.Deployment{}, func(w *Widget, obj client.Object) {
			d := obj.(*appsv1.Deployment)
			d.Spec.Replicas, d.Spec.Selector = &w.Spec.Size, selectorOf(w)
			declareTemplate(w, &d.Spec.Template)
		}, func(obj client.Object) bool {
			d := obj.(*appsv1.Deployment)
			return d.Status.ObservedGeneration == d.Generation && d.Status.UpdatedReplicas == *d.Spec.Replicas && d.Status.AvailableReplicas == *d.Spec.Replicas
		}},
		{"replicaset", &appsv1.ReplicaSet{}, func(w *Widget, obj client.Object) {
			s := obj.(*appsv1.ReplicaSet)
			s.Spec.Replicas, s.Spec.Selector = &w.Spec.Size, selectorOf(w)
			if s.ResourceVersion == "" { // Pods are not replaced when the template changes
				declareTemplate(w, &s.Spec.Template)
				s.Spec.Template.Spec.Containers[0].Image = "nginx:1"
			}
		}, func(obj client.Object) bool {
			s := obj.(*appsv1.ReplicaSet)
			return s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == *s.Spec.Replicas
		}},
		{"statefulset", &appsv1.StatefulSet{}, declareStatefulSet, func(obj client.Object) bool {
			s := obj.(*appsv1.StatefulSet)
			return s.Status.ObservedGeneration == s.Generation && s.Status.ReadyReplicas == *s.Spec.Replicas && s.Status.CurrentRevision == s.Status.UpdateRevision
		}},
		{"daemonset", &appsv1.DaemonSet{}, func(w *Widget, obj client.Object) {
			s := obj.(*appsv1.DaemonSet)
			s.Spec.Selector = selectorOf(w)
			declareTemplate(w, &s.Spec.Template)
		}, func(obj client.Object) bool {
			s := obj.(*appsv1.DaemonSet).Status
			return s.ObservedGeneration == obj.GetGeneration() && s.DesiredNumberScheduled > 0 && s.NumberReady == s.DesiredNumberScheduled &&
				s.UpdatedNumberScheduled == s.DesiredNumberScheduled
		}},
	}
}

func playedOthers() []played {
	return []played{
		{"job", &batchv1.Job{}, func(w *Widget, obj client.Object) {
			if job := obj.(*batchv1.Job); job.ResourceVersion == "" { // the rest can't be changed
				declareTemplate(w, &job.Spec.Template)
				job.Spec.Template.Spec.Containers[0].Image = "busybox:1" // whatever the Widget became since
				job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
			}
		}, func(obj client.Object) bool {
			return slices.ContainsFunc(obj.(*batchv1.Job).Status.Conditions, func(c batchv1.JobCondition) bool {
				return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
			})
		}},
		{"pod", &corev1.Pod{}, func(w *Widget, obj client.Object) {
			pod := obj.(*corev1.Pod)
			declareContainer(w, &pod.Spec)
		}, func(obj client.Object) bool {
			return isPodReady(obj.(*corev1.Pod))
		}},
		{"claim", &corev1.PersistentVolumeClaim{}, func(w *Widget, obj client.Object) {
			claim := obj.(*corev1.PersistentVolumeClaim)
			claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(int64(w.Spec.Size)<<30, resource.BinarySI)}
		}, func(obj client.Object) bool {
			return obj.(*corev1.PersistentVolumeClaim).Status.Phase == corev1.ClaimBound
		}},
		{"service", &corev1.Service{}, func(w *Widget, obj client.Object) {
			service := obj.(*corev1.Service)
			service.Spec.Type, service.Spec.Selector = corev1.ServiceTypeLoadBalancer, selectorOf(w).MatchLabels
			if len(service.Spec.Ports) != 1 {
				service.Spec.Ports = []corev1.ServicePort{{}}
			}
			service.Spec.Ports[0].Port, service.Spec.Ports[0].TargetPort = 8000+w.Spec.Size, intstr.FromInt32(80)
		}, func(obj client.Object) bool { return len(obj.(*corev1.Service).Status.LoadBalancer.Ingress) > 0 }},
	}
}

func declareStatefulSet(w *Widget, obj client.Object) {
	s := obj.(*appsv1.StatefulSet)
	s.Spec.Replicas, s.Spec.Selector, s.Spec.ServiceName = &w.Spec.Size, selectorOf(w), w.Name
	declareTemplate(w, &s.Spec.Template)
	if s.ResourceVersion == "" {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: smallVolume()}}
	}
}

func smallVolume() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

func isPodReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

func selectorOf(w *Widget) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"widget": w.Name}}
}

func declareTemplate(w *Widget, template *corev1.PodTemplateSpec) {
	if template.Labels == nil {
		template.Labels = map[string]string{}
	}
	template.Labels["widget"] = w.Name
	declareContainer(w, &template.Spec)
}

// declareContainer sets only what the operator wants: the rest of the container has defaults.
func declareContainer(w *Widget, spec *corev1.PodSpec) {
	if len(spec.Containers) != 1 {
		spec.Containers = []corev1.Container{{}}
	}
	spec.Containers[0].Name, spec.Containers[0].Image = "main", w.Spec.Image
}

// workload is the life of a Widget with a child. There is no wrong twin.
func (p played) workload(Bug) sim.Workload {
	return sim.Workload{
		Name: "played-" + p.name, Scheme: scheme, CRDs: definitions,
		Operator: asManager(func(mgr ctrl.Manager, _ *sim.Process) error {
			r := &caretaker{Client: mgr.GetClient(), played: p}
			return ctrl.NewControllerManagedBy(mgr).For(&Widget{}).Owns(p.child).Complete(r)
		}),
		Script: life(func(x *Widget) { x.Spec.Size, x.Spec.Image = 2, "nginx:2" }),
	}
}

// caretaker is the operator.
type caretaker struct {
	client.Client
	played
	countsPods bool // the child is ready when its Pods are
}

func (r *caretaker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return reconcileReady(ctx, r.Client, req, r.keep)
}

// keep makes the child what it should be, and returns the condition that says whether it is ready.
func (r *caretaker) keep(ctx context.Context, w *Widget) (metav1.Condition, error) {
	child := r.child.DeepCopyObject().(client.Object)
	taken := metav1.Condition{Status: metav1.ConditionFalse, Reason: nameTaken, Message: "another object has the name of the child"}
	unready := metav1.Condition{Status: metav1.ConditionFalse, Reason: "Unready", Message: "the child is not ready"}
	err := r.Get(ctx, client.ObjectKeyFromObject(w), child)
	switch {
	case apierrors.IsNotFound(err):
		child.SetNamespace(w.Namespace)
		child.SetName(w.Name)
		r.declare(w, child)
		if err := ctrl.SetControllerReference(w, child, r.Scheme()); err != nil {
			return unready, err
		}
		err := r.Create(ctx, child)
		if apierrors.IsAlreadyExists(err) {
			return taken, nil // or the cache has not seen it yet
		}
		return unready, err
	case err != nil:
		return unready, err
	case !metav1.IsControlledBy(child, w):
		return taken, nil
	case child.GetDeletionTimestamp() != nil:
		return unready, nil // its end is an event
	}
	current := child.DeepCopyObject()
	r.declare(w, child)
	if !equality.Semantic.DeepEqual(current, child) {
		return unready, r.Update(ctx, child)
	}
	ready := r.ready(child)
	if r.countsPods {
		if ready, err = r.podsAreReady(ctx, w, child); err != nil {
			return unready, err
		}
	}
	if !ready {
		return unready, nil
	}
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: "Ready", Message: "the child is ready"}, nil
}
