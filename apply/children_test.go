// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
	"github.com/ctrlkit/ctrlkit/step/steptest"
)

func TestSmoke(t *testing.T) {
	s := apply.Children("Parts", func(_ context.Context, req *step.Request[*corev1.ConfigMap], want *apply.Set) error {
		l := map[string]string{"a": "b"}
		want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: l},
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		want.Add(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: l},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: l}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}},
		}}, apply.Wave(1))
		return nil
	}, apply.Owns(&corev1.Secret{}, &corev1.Service{}, &appsv1.Deployment{}))
	got := steptest.Do(t, s, &corev1.ConfigMap{})
	t.Logf("%+v", got)
}
