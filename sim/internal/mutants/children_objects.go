// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"maps"
	"reflect"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// children makes the children what they should be. wait says why it can't continue.
func (r *children) children(ctx context.Context, w *Widget, secret *corev1.Secret) (wait string, err error) {
	var pruneErr error
	if r.bug != keepsOldChild {
		pruneErr = r.prune(ctx, w)
	}
	wait, err = r.configMap(ctx, w, secret)
	waitDeployment, deploymentErr := r.deployment(ctx, w)
	for _, e := range []error{err, deploymentErr, pruneErr} {
		if e != nil {
			return "", e
		}
	}
	if wait == "" {
		wait = waitDeployment
	}
	return wait, nil
}

func configName(w *Widget) string {
	if w.Spec.Child != "" {
		return w.Spec.Child
	}
	return w.Name + "-config"
}

// prune deletes ConfigMaps of the Widget that are not wanted.
func (r *children) prune(ctx context.Context, w *Widget) error {
	list := &corev1.ConfigMapList{}
	if err := r.List(ctx, list, client.InNamespace(w.Namespace)); err != nil {
		return err
	}
	for i := range list.Items {
		cm := &list.Items[i]
		if cm.Name == configName(w) || !metav1.IsControlledBy(cm, w) || cm.DeletionTimestamp != nil {
			continue
		}
		if err := deleteThis(ctx, r, cm); err != nil {
			return err
		}
	}
	return nil
}

// owns reports whether an object is the Widget's.
func (r *children) owns(w *Widget, obj client.Object) bool {
	switch r.bug {
	case adoptsForeign, noOwner:
		return true
	case identityIsName:
		return obj.GetLabels()["widget"] == w.Name
	case anyControllerIsOurs:
		return metav1.GetControllerOf(obj) != nil
	case usesOrphans, adoptsOrphans:
		return metav1.IsControlledBy(obj, w) || isOrphan(w, obj)
	}
	return metav1.IsControlledBy(obj, w)
}

// isOrphan reports whether an object has the label of the Widget's children, and no controller.
func isOrphan(w *Widget, obj client.Object) bool {
	return metav1.GetControllerOf(obj) == nil && obj.GetLabels()["widget"] == w.Name
}

// adopts reports whether the operator becomes the owner of what it uses.
func (r *children) adopts() bool { return r.bug == adoptsForeign || r.bug == adoptsOrphans }

// replaceOrphan deletes an orphan, if the operator does that.
func (r *children) replaceOrphan(ctx context.Context, w *Widget, obj client.Object) (bool, error) {
	if r.bug != deletesOrphans || !isOrphan(w, obj) {
		return false, nil
	}
	return true, deleteThis(ctx, r, obj)
}

// own makes an object the Widget's.
func (r *children) own(w *Widget, obj client.Object) error {
	if r.bug == noOwner || r.bug == edgeTriggered {
		return nil
	}
	obj.SetOwnerReferences(nil)
	return ctrl.SetControllerReference(w, obj, r.Scheme())
}

func (r *children) configMap(ctx context.Context, w *Widget, secret *corev1.Secret) (wait string, err error) {
	data := map[string]string{"size": strconv.Itoa(int(w.Spec.Size)), "secret": secret.Name}
	if w.Spec.Note != "" {
		data["note"] = w.Spec.Note
	}
	wanted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: configName(w), Labels: map[string]string{"widget": w.Name}}, Data: data}
	cm := &corev1.ConfigMap{}
	return r.keep(ctx, w, "ConfigMap", wanted, cm, func() {
		old := cm.Data
		cm.Data = data
		if r.bug == keepsOldField {
			cm.Data = maps.Clone(old)
			maps.Copy(cm.Data, data)
		}
		if r.bug == wipesAnnotations {
			cm.Annotations, cm.Labels = nil, map[string]string{"widget": w.Name}
		}
	})
}

// keep reads a child into obj, and creates it or updates it with what change makes of it. wait says
// why it can't.
func (r *children) keep(ctx context.Context, w *Widget, kind string, wanted, obj client.Object, change func()) (wait string, err error) {
	err = r.Get(ctx, client.ObjectKeyFromObject(wanted), obj)
	switch {
	case apierrors.IsNotFound(err):
		return r.create(ctx, w, wanted)
	case err != nil:
		return "", err
	case !r.owns(w, obj) && r.bug != edgeTriggered:
		if r.bug == existsIsDone {
			return "", nil
		}
		if replaced, err := r.replaceOrphan(ctx, w, obj); replaced {
			return "an orphan is being replaced", err
		}
		return "the name of the " + kind + " is taken", nil
	}
	before := obj.DeepCopyObject()
	change()
	if r.adopts() {
		if err := r.own(w, obj); err != nil {
			return "", err
		}
	}
	if reflect.DeepEqual(before, obj) {
		return "", nil
	}
	r.written++
	return "", r.Update(ctx, obj)
}

// create creates a child.
func (r *children) create(ctx context.Context, w *Widget, obj client.Object) (wait string, err error) {
	if err := r.own(w, obj); err != nil {
		return "", err
	}
	r.written++
	err = r.Create(ctx, obj)
	if apierrors.IsAlreadyExists(err) && r.bug == existsIsDone {
		return "", nil
	}
	return "", err
}

func (r *children) deployment(ctx context.Context, w *Widget) (wait string, err error) {
	labels := map[string]string{"widget": w.Name}
	wanted := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Replicas: &w.Spec.Size, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: w.Spec.Image}}},
			},
		},
	}
	d := &appsv1.Deployment{}
	return r.keep(ctx, w, "Deployment", wanted, d, func() {
		if r.bug == comparesDefaults {
			d.Spec = wanted.Spec
			return
		}
		d.Spec.Replicas = wanted.Spec.Replicas
		if len(d.Spec.Template.Spec.Containers) > 0 {
			d.Spec.Template.Spec.Containers[0].Image = w.Spec.Image
		}
	})
}

// available reports whether the Pods of the Deployment run. Each change of its status is an event, so
// that nothing has to be polled.
func (r *children) available(ctx context.Context, w *Widget) (bool, error) {
	d := &appsv1.Deployment{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(w), d); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	s := d.Status
	return s.ObservedGeneration == d.Generation && s.UpdatedReplicas == w.Spec.Size && s.AvailableReplicas == w.Spec.Size, nil
}
