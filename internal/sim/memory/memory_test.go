// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// patience is how long a test waits for what players do within seconds.
const patience = time.Minute

type world struct {
	client.WithWatch
	t *testing.T
}

// start starts a cluster, and returns it as it is for the user of its kubeconfig file.
func start(t *testing.T, o memory.Options) (world, *memory.Cluster) {
	t.Helper()
	cluster, err := memory.Start(o)
	must(t, err)
	t.Cleanup(func() {
		if err := errors.Join(cluster.Err(), cluster.Stop()); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig())
	must(t, err)
	c, err := client.NewWithWatch(config, client.Options{})
	must(t, err)
	return world{c, t}, cluster
}

func (w world) create(obj client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// until watches the object of a name until the condition holds for an event of it.
func (w world) until(list client.ObjectList, name string, holds func(watch.Event) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	events, err := w.Watch(ctx, list, client.InNamespace("default"), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
	if err != nil {
		w.t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		if holds(event) {
			return
		}
	}
	w.t.Fatalf("%T %s: what the test waits for did not happen", list, name)
}

var podTemplate = corev1.PodTemplateSpec{
	ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
	Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
}

func newJob(name string, annotations map[string]string) *batchv1.Job {
	template := *podTemplate.DeepCopy()
	template.Annotations = annotations
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       batchv1.JobSpec{BackoffLimit: new(int32(0)), Template: template},
	}
}

func hasCondition(kind batchv1.JobConditionType) func(watch.Event) bool {
	return func(event watch.Event) bool {
		job, ok := event.Object.(*batchv1.Job)
		if !ok {
			return false
		}
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				return true
			}
		}
		return false
	}
}

func TestWorkloadsArePlayed(t *testing.T) {
	rings.Test(t, "takes seconds")
	t.Parallel()
	w, _ := start(t, memory.Options{})
	w.create(newJob("good", nil))
	w.create(newJob("bad", map[string]string{controlplane.ExitCodeAnnotation: "3"}))
	w.create(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: podTemplate.Labels}, Template: podTemplate},
	})
	w.until(&batchv1.JobList{}, "good", hasCondition(batchv1.JobComplete))
	w.until(&batchv1.JobList{}, "bad", hasCondition(batchv1.JobFailed))
	w.until(&appsv1.DeploymentList{}, "web", func(event watch.Event) bool {
		d, ok := event.Object.(*appsv1.Deployment)
		return ok && d.Status.AvailableReplicas == 2
	})
	var pods corev1.PodList
	must(t, w.List(t.Context(), &pods, client.InNamespace("default")))
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "node-1" {
			t.Errorf("Pod %s is on node %q, which does not exist", pod.Name, pod.Spec.NodeName)
		}
	}
}

func TestGarbageIsCollected(t *testing.T) {
	t.Parallel()
	w, _ := start(t, memory.Options{})
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	w.create(owner)
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "child", OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}},
	}})
	w.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stranger"}})
	must(t, w.Delete(t.Context(), owner))
	err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the child of a deleted object: %v, want that it is not found", err)
	}
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "stranger"}, &corev1.ConfigMap{}); err != nil {
		t.Errorf("an object without owner: %v", err)
	}
}

// Each namespace has the ServiceAccount that Pods use, also after it was deleted.
func TestServiceAccounts(t *testing.T) {
	t.Parallel()
	w, _ := start(t, memory.Options{})
	there := func(event watch.Event) bool { return event.Type == watch.Added }
	w.until(&corev1.ServiceAccountList{}, "default", there)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "default"}}
	must(t, w.Delete(t.Context(), account))
	w.until(&corev1.ServiceAccountList{}, "default", there)
}

func TestStrangersAreRefused(t *testing.T) {
	t.Parallel()
	_, cluster := start(t, memory.Options{})
	for name, token := range map[string]string{"no token": "", "another token": "guessed"} {
		config := cluster.Config()
		config.BearerToken = token
		c, err := client.New(config, client.Options{})
		if err == nil {
			err = c.List(t.Context(), &corev1.SecretList{})
		}
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("a client with %s: %v, want that it is refused", name, err)
		}
	}
}

func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	w, cluster := start(t, memory.Options{})
	events, err := w.Watch(t.Context(), &corev1.ConfigMapList{})
	must(t, err)
	must(t, cluster.Stop())
	for range events.ResultChan() { //nolint:revive // it ends, or the test does not
	}
	if _, err := os.Stat(cluster.Kubeconfig()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kubeconfig file after Stop: %v", err)
	}
	if err := cluster.Stop(); err != nil {
		t.Errorf("stopping again: %v", err)
	}
	select {
	case <-cluster.Done():
		t.Errorf("a cluster that was stopped has failed: %v", cluster.Err())
	default:
	}
}

// A player that panics ends the cluster: what it would show from then on is wrong.
func TestABrokenPlayerIsAFailure(t *testing.T) {
	t.Parallel()
	broken := player.New(func(*player.Stage, *corev1.ConfigMap) error { panic("broken") })
	cluster, err := memory.Start(memory.Options{Players: player.None().With(broken)})
	must(t, err)
	c, err := client.New(cluster.Config(), client.Options{})
	must(t, err)
	must(t, c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}}))
	<-cluster.Done()
	if err := cluster.Err(); err == nil || err.Error() != "the configmap-player panicked: broken" {
		t.Errorf("the failure is %v", err)
	}
	if err := cluster.Stop(); err != nil {
		t.Error(err)
	}
}

// Without players, a cluster has what the API server itself makes, as an empty control plane.
func TestWithoutPlayersThereIsOnlyTheServer(t *testing.T) {
	t.Parallel()
	w, cluster := start(t, memory.Options{Players: player.None()})
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
	var got []string
	for _, o := range cluster.Objects() {
		got = append(got, strings.TrimPrefix(o.Resource.Resource+" "+o.Namespace+"/"+o.Name, " "))
	}
	want := []string{
		"namespaces /default", "namespaces /kube-node-lease", "namespaces /kube-public", "namespaces /kube-system", "namespaces /new",
		"services default/kubernetes",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// A client with the token of a ServiceAccount is that account, until the account is deleted.
func TestTokensOfServiceAccounts(t *testing.T) {
	t.Parallel()
	w, cluster := start(t, memory.Options{Players: player.None()})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
	w.create(account)
	request := &authenticationv1.TokenRequest{}
	must(t, w.SubResource("token").Create(t.Context(), account, request))
	config := rest.AnonymousClientConfig(cluster.Config())
	config.BearerToken = request.Status.Token
	robot, err := client.New(config, client.Options{})
	must(t, err)
	review := &authenticationv1.SelfSubjectReview{}
	must(t, robot.Create(t.Context(), review))
	if got, want := review.Status.UserInfo.Username, "system:serviceaccount:default:robot"; got != want {
		t.Errorf("the client is %q, want %q", got, want)
	}
	must(t, w.Delete(t.Context(), account))
	if err := robot.Create(t.Context(), &authenticationv1.SelfSubjectReview{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("after the account is deleted: %v", err)
	}
}

// The annotations of Pods mean the same as on the Nodes of the real control plane.
func TestAnnotationsAreThoseOfTheControlPlane(t *testing.T) {
	if player.RunsForAnnotation != controlplane.RunsForAnnotation || player.ExitCodeAnnotation != controlplane.ExitCodeAnnotation {
		t.Errorf("players know %s and %s", player.RunsForAnnotation, player.ExitCodeAnnotation)
	}
}

// BenchmarkStart measures the start of a cluster. The first one of a process also reads the schemas of
// all built-in kinds.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		cluster, err := memory.Start(memory.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := cluster.Stop(); err != nil {
			b.Fatal(err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
