// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operators

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/bench/widget"
)

// ConfigMap returns the ConfigMap that a Widget should have.
func ConfigMap(w *widget.Widget) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metaOf(w), Data: map[string]string{"text": w.Spec.First}}
}

// Secret returns the Secret that a Widget should have.
func Secret(w *widget.Widget) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metaOf(w), Data: map[string][]byte{"password": []byte(w.Spec.Second)}}
}

// Service returns the headless Service that a Widget should have, as people write it: the defaults
// of the API server are not spelled out.
func Service(w *widget.Widget) *corev1.Service {
	return &corev1.Service{ObjectMeta: metaOf(w), Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone,
		Selector:  map[string]string{"app": w.Spec.Third},
		Ports:     []corev1.ServicePort{{Name: "http", Port: 80}},
	}}
}

func metaOf(w *widget.Widget) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.Namespace, Name: w.Name, Labels: labelsOf(w)}
}

func labelsOf(w *widget.Widget) map[string]string { return map[string]string{"widget": w.Name} }

// SetReady sets the status of a Widget whose children exist: what an engine of steps sets, too, so
// that one operator has nothing to write where another has left off.
func SetReady(w *widget.Widget) {
	w.Status.ObservedGeneration = w.Generation
	for _, c := range []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready"},
		{Type: "ChildrenReady", Status: metav1.ConditionTrue, Reason: "AllReady"},
	} {
		c.ObservedGeneration = w.Generation
		meta.SetStatusCondition(&w.Status.Conditions, c)
	}
}
