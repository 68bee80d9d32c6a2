// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// parts is a step that keeps a Secret, a ConfigMap, a Pod, and a Service that waits for it.
func parts() step.Step[*Database] {
	return apply.Children("Parts", func(_ context.Context, _ *request, want *apply.Set) error {
		named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
		want.Add(&corev1.Secret{ObjectMeta: named("password")}, &corev1.ConfigMap{ObjectMeta: named("settings")})
		want.Add(&corev1.Pod{ObjectMeta: named("db-0"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "postgres:18"}}}})
		want.Add(&corev1.Service{ObjectMeta: named("db"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}}}, apply.Wave(1))
		return nil
	}, apply.Owns(&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Pod{}, &corev1.Service{}))
}

// tracked returns a PriorityClass of a set.
func tracked(owner string) *unstructured.Unstructured {
	class := plain("scheduling.k8s.io/v1", "PriorityClass")
	class.SetNamespace("")
	class.SetAnnotations(map[string]string{apply.OwnerAnnotation: owner})
	return class
}
