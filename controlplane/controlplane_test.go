// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience is how long a test waits for something that a controller does.
const patience = 30 * time.Second

func newClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newNamespace creates a namespace for one test and waits until Pods can be created in it.
func newNamespace(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	create(t, c, namespace)
	eventually(t, "the default ServiceAccount", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace.Name, Name: "default"}, &corev1.ServiceAccount{})
	})
	return namespace.Name
}

func create(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("creating %T %s: %v", obj, obj.GetName(), err)
		}
	}
}

// eventually waits for what other processes do.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := poll(ctx, readinessInterval, nil, check); err != nil {
		t.Fatalf("waiting for %s: %v", what, err)
	}
}

func eventuallyGone(t *testing.T, c client.Client, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		eventually(t, fmt.Sprintf("the end of %T %s", obj, obj.GetName()), func(ctx context.Context) error {
			err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(err, fmt.Errorf("it is still there"))
		})
	}
}

func podTemplate(annotations map[string]string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "test"}, Annotations: annotations},
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: "first", Image: "nowhere/first"}},
			Containers:     []corev1.Container{{Name: "main", Image: "nowhere/main"}},
		},
	}
}

func newJob(namespace, name string, annotations map[string]string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	job.Spec.Template = podTemplate(annotations)
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	job.Spec.BackoffLimit = new(int32)
	return job
}

func eventuallyFinished(t *testing.T, c client.Client, job *batchv1.Job, want batchv1.JobConditionType) {
	t.Helper()
	eventually(t, fmt.Sprintf("Job %s to be %s", job.Name, want), func(ctx context.Context) error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(job), job); err != nil {
			return err
		}
		for _, condition := range job.Status.Conditions {
			if condition.Type == want && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", job.Status.Conditions)
	})
}

func TestAJobRunsAndCompletes(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	failing := newJob(namespace, "failing", map[string]string{RunsForAnnotation: "100ms", ExitCodeAnnotation: "3"})
	long := newJob(namespace, "long", map[string]string{RunsForAnnotation: "1h"})
	failing.Spec.Template.Spec.InitContainers = append(failing.Spec.Template.Spec.InitContainers,
		corev1.Container{Name: "sidecar", Image: "nowhere/sidecar", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)})
	create(t, c, failing, long)
	eventuallyFinished(t, c, failing, batchv1.JobFailed)
	var pods corev1.PodList
	if err := c.List(t.Context(), &pods, client.InNamespace(namespace), client.MatchingLabels{"job-name": "failing"}); err != nil {
		t.Fatal(err)
	}
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
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(long), long); err != nil {
		t.Fatal(err)
	}
	if long.Status.Succeeded != 0 {
		t.Error("the Job of an hour has completed")
	}
}

func TestADeploymentBecomesAvailable(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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
	if err := c.Delete(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
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
	t.Parallel()
	c := newClient(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, c)
	eventually(t, "the certificate for Pods", func(ctx context.Context) error {
		return c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	})
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "content"}}
	create(t, c, content)
	obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	eventuallyGone(t, c, obj, content)
}

func TestAUserMayDoNothingByDefault(t *testing.T) {
	t.Parallel()
	config, err := shared.ForTest(t).AddUser("jane", "developers")
	if err != nil {
		t.Fatal(err)
	}
	err = newClient(t, config).List(t.Context(), &corev1.SecretList{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) {
		t.Errorf("err = %v, want that jane is forbidden to do it", err)
	}
}

func TestKubectlListsEditsAndDeletes(t *testing.T) {
	t.Parallel()
	plane := shared.ForTest(t)
	namespace := newNamespace(t, newClient(t, plane.Config()))
	editor := filepath.Join(t.TempDir(), "editor")
	if err := os.WriteFile(editor, []byte("#!/bin/sh\nsed -i.bak 's/size: 1/size: 2/' \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	kubectl := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), plane.Assets().Program(kubectlProgram), append([]string{"--namespace", namespace}, args...)...)
		command.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig(), "KUBE_EDITOR="+editor, "HOME="+t.TempDir())
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, output)
		}
		return strings.TrimSpace(string(output))
	}
	kubectl("create", "-f", "testdata/widget.yaml")
	if got, want := kubectl("get", "widgets", "-o", "name"), "widget.test.ctrlkit.dev/small"; got != want {
		t.Errorf("get: %q, want %q", got, want)
	}
	kubectl("edit", "widget", "small")
	if got, want := kubectl("get", "widget", "small", "-o", "jsonpath={.spec.size}"), "2"; got != want {
		t.Errorf("after the edit its size is %q, want %q", got, want)
	}
	kubectl("delete", "widget", "small")
	if got, want := kubectl("get", "widgets"), "No resources found"; !strings.HasPrefix(got, want) {
		t.Errorf("after the deletion: %q, want %q", got, want)
	}
	if got := kubectl("version"); strings.Contains(got, "$Format") || strings.Count(got, "Version: v1.") != 2 {
		t.Errorf("version: %q, want that of a release for client and server", got)
	}
}

func TestAControlPlaneOfTheLeastPartsTakesPods(t *testing.T) {
	t.Parallel()
	plane := StartForTest(t, Options{})
	if diff := cmp.Diff([]string{etcdProgram, apiServerProgram}, plane.programs()); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "alone"}, Spec: podTemplate(nil).Spec}
	create(t, newClient(t, plane.Config()), pod)
}

// programs lists what runs, in the order in which it was started.
func (c *ControlPlane) programs() []string {
	var names []string
	for _, p := range c.processes {
		names = append(names, p.name)
	}
	return names
}

func TestTwoControlPlanesKnowNothingOfEachOther(t *testing.T) {
	t.Parallel()
	planes := make(chan *ControlPlane, 2)
	for range 2 {
		go func() {
			plane, err := Start(t.Context(), Options{})
			if err != nil {
				t.Error(err)
			}
			planes <- plane
		}()
	}
	first, second := <-planes, <-planes
	if t.Failed() {
		t.FailNow()
	}
	defer stopForTest(t, second)
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mark"}}
	create(t, newClient(t, first.Config()), mark)
	stopForTest(t, first)
	err := newClient(t, second.Config()).Get(t.Context(), client.ObjectKeyFromObject(mark), mark)
	if !apierrors.IsNotFound(err) {
		t.Errorf("the other's ConfigMap: %v, want that it is not found", err)
	}
}

func stopForTest(t *testing.T, plane *ControlPlane) {
	t.Helper()
	dir := plane.dir
	for range 2 {
		if err := plane.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	}
	if err := plane.Err(); err != nil {
		t.Errorf("after a stop: %v", err)
	}
	for name, pid := range plane.pids() {
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%s (process %d) still runs", name, pid)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v, want that it does not exist", err)
	}
}

func TestTheDeathOfAProcessIsNoticed(t *testing.T) {
	t.Parallel()
	plane, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer plane.Stop() //nolint:errcheck // the test is about the time before
	if err := syscall.Kill(plane.pids()[etcdProgram], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-plane.Done()
	if err := plane.Err(); err == nil || !strings.Contains(err.Error(), etcdProgram) {
		t.Errorf("err = %v, want one that names etcd", err)
	}
}

func TestAProcessThatDiesAtStartIsQuoted(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Options{Flags: map[string][]string{apiServerProgram: {"--no-such-flag"}}})
	if err == nil || !strings.Contains(err.Error(), "kube-apiserver ended: exit status 1") || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("err = %v, want what kube-apiserver says about its flag", err)
	}
}

func TestAStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	assets, err := FindAssets(t.Context(), 0, BuildOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := Start(ctx, Options{Assets: assets}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err = %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestLogsRemainWhereTheyWereWanted(t *testing.T) {
	t.Parallel()
	logs := t.TempDir()
	stopForTest(t, StartForTest(t, Options{LogDir: logs}))
	info, err := os.Stat(filepath.Join(logs, "kube-apiserver.log"))
	if err != nil || info.Size() == 0 {
		t.Errorf("the log of kube-apiserver: %v, %v", info, err)
	}
}

// TestEnvtestUsesTheAssets is what any user of controller-runtime does.
func TestEnvtestUsesTheAssets(t *testing.T) {
	t.Parallel()
	assets, err := FindAssets(t.Context(), 0, BuildOptions{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	environment := &envtest.Environment{
		BinaryAssetsDirectory: assets.Dir,
		CRDDirectoryPaths:     []string{"testdata/crds"},
		ErrorIfCRDPathMissing: true,
	}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	}()
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion("test.ctrlkit.dev/v1")
	widget.SetKind("Widget")
	widget.SetNamespace("default")
	widget.SetName("small")
	create(t, newClient(t, config), widget)
	user, err := environment.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, err := kubectl.Run("get", "widgets", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if want := "widget.test.ctrlkit.dev/small\n"; string(got) != want {
		t.Errorf("kubectl get: %q, want %q", got, want)
	}
}

func TestWriteKubeconfigCanBeUndone(t *testing.T) {
	t.Parallel()
	plane := shared.ForTest(t)
	file := filepath.Join(t.TempDir(), "config")
	const mine = `apiVersion: v1
kind: Config
clusters: [{name: mine, cluster: {server: https://mine.example.com}}]
contexts: [{name: mine, context: {cluster: mine, user: ""}}]
current-context: mine
`
	if err := os.WriteFile(file, []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	restore, err := plane.WriteKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		t.Fatal(err)
	}
	if err := newClient(t, config).List(t.Context(), &corev1.NamespaceList{}); err != nil {
		t.Errorf("using the file: %v", err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	after, err := clientcmd.LoadFromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the file after it was restored (-before +after):\n%s", diff)
	}
}

func TestWriteKubeconfigRemovesTheFileItMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config")
	restore, err := shared.ForTest(t).WriteKubeconfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file: %v, want that it does not exist", err)
	}
}
