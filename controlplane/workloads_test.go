// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

func TestAJobRunsAndCompletes(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	job := newJob(namespace, "short", nil)
	create(t, c, job)
	eventually(t, "an active Pod", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		if job.Status.Active != 1 || job.Status.Ready == nil || *job.Status.Ready != 1 {
			return fmt.Errorf("its status is %+v", job.Status)
		}
		return nil
	})
	eventuallyFinished(t, c, job, batchv1.JobComplete)
}

func TestAnnotationsSayHowAPodEnds(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	failing := newJob(namespace, "failing", map[string]string{controlplane.RunsForAnnotation: "100ms", controlplane.ExitCodeAnnotation: "3"})
	long := newJob(namespace, "long", map[string]string{controlplane.RunsForAnnotation: "1h"})
	failing.Spec.Template.Spec.InitContainers = append(failing.Spec.Template.Spec.InitContainers,
		corev1.Container{Name: "sidecar", Image: "nowhere/sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	create(t, c, failing, long)
	eventuallyFinished(t, c, failing, batchv1.JobFailed)
	var pods corev1.PodList
	must(t, c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"job-name": "failing"}))
	var ends []string
	for _, pod := range pods.Items {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			ends = append(ends, fmt.Sprintf("%s: exit code %d", status.Name, status.State.Terminated.ExitCode))
		}
	}
	want := []string{"first: exit code 0", "sidecar: exit code 0", "main: exit code 3"}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Errorf("how the containers of the failing Job's Pods ended (-want +got):\n%s", diff)
	}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(long), long))
	if long.Status.Succeeded != 0 {
		t.Error("the Job of an hour has completed")
	}
}

func TestADeploymentBecomesAvailable(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(t, c), Name: "web"}}
	deployment.Spec.Replicas = new(int32(3))
	deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
	deployment.Spec.Template = podTemplate(nil)
	create(t, c, deployment)
	eventually(t, "three available replicas", func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); err != nil {
			return err
		}
		if got := deployment.Status.AvailableReplicas; got != 3 {
			return fmt.Errorf("%d are available", got)
		}
		return nil
	})
}

func TestAStatefulSetAndADaemonSetBecomeReady(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "test"}}
	stateful := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db"}}
	stateful.Spec = appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: selector, Template: podTemplate(nil)}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "agent"}}
	daemon.Spec = appsv1.DaemonSetSpec{Selector: selector, Template: podTemplate(nil)}
	daemon.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}
	daemon.Spec.Template.Labels = map[string]string{"app": "agent"}
	create(t, c, stateful, daemon)
	eventually(t, "both to be ready", func(ctx context.Context) error {
		err := errors.Join(
			c.Get(ctx, client.ObjectKeyFromObject(stateful), stateful),
			c.Get(ctx, client.ObjectKeyFromObject(daemon), daemon))
		if err != nil {
			return err
		}
		if got := [2]int32{stateful.Status.ReadyReplicas, daemon.Status.NumberReady}; got != [2]int32{2, 2} {
			return fmt.Errorf("%d and %d Pods are ready, want 2 and, on two Nodes, 2", got[0], got[1])
		}
		return nil
	})
}

func TestDeletingAnOwnerRemovesItsJobsAndPods(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion("test.ctrlkit.dev/v1")
	owner.SetKind("Widget")
	owner.SetNamespace(namespace)
	owner.SetName("owner")
	create(t, c, owner)
	owned := newJob(namespace, "owned", nil)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}}
	free := newJob(namespace, "free", nil)
	create(t, c, owned, free)
	eventuallyFinished(t, c, owned, batchv1.JobComplete)
	must(t, c.Delete(t.Context(), owner))
	eventuallyGone(t, c, owned)
	eventually(t, "the end of the owned Job's Pods", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"job-name": owned.Name}); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("%d are still there", len(pods.Items))
		}
		return nil
	})
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(free), free); err != nil {
		t.Errorf("the Job without an owner: %v", err)
	}
}

func TestANamespaceCanBeUsedAndDeleted(t *testing.T) {
	starts(t)
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	eventually(t, "the certificate for Pods", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "content"}}
	create(t, c, content)
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	must(t, c.Delete(t.Context(), obj))
	eventuallyGone(t, c, obj, content)
}

func TestAUserMayDoNothingByDefault(t *testing.T) {
	starts(t)
	config, err := shared.ForTest(t).AddUser("jane", "developers")
	must(t, err)
	err = newClient(t, config).List(t.Context(), &corev1.SecretList{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("err = %v, want that jane is forbidden to do it", err)
	}
}
