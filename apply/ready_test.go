// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
)

func newConfigMap(name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{}}
	for i := 0; i < len(data); i += 2 {
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func newDeployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "nginx:1"}},
			}},
		},
	}
}

func newService(name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}},
	}}
}

// setStatus writes a status as the controller of the kind does.
func (c *cluster) setStatus(obj client.Object, status string) {
	c.t.Helper()
	obj.SetNamespace(c.namespace)
	if err := c.client.Status().Patch(c.ctx, obj, client.RawPatch("application/merge-patch+json", []byte(`{"status":`+status+`}`))); err != nil {
		c.t.Fatalf("status of %s: %v", obj.GetName(), err)
	}
}

func TestReadyWhen(t *testing.T) {
	joined := apply.ReadyWhen(func(obj *unstructured.Unstructured) (bool, string) {
		members, _, _ := unstructured.NestedString(obj.Object, "data", "members")
		unstructured.RemoveNestedField(obj.Object, "data") // which changes nothing but its copy
		return members == "3", "2 of 3 members have joined"
	})
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newConfigMap("a"), joined) }, apply.Owns(&corev1.ConfigMap{}))
	o.settle(shop)
	if got, want := o.condition(shop), "False NotAllReady: 0 of 1 ready: ConfigMap a: 2 of 3 members have joined"; got != want {
		t.Errorf("condition %q, want %q", got, want)
	}
	o.patch(newConfigMap("a"), `{"data":{"members":"3"}}`)
	o.mustSettle(shop)
	if got := o.condition(shop); got != "True AllReady" {
		t.Errorf("condition %q", got)
	}
}

// A function of the operator that panics, in a goroutine of the set, does not end the process.
func TestPanicOfReadyWhen(t *testing.T) {
	broken := apply.ReadyWhen(func(*unstructured.Unstructured) (bool, string) { panic("broken") })
	for _, objects := range [][]any{{newConfigMap("a"), broken}, {newConfigMap("a"), newConfigMap("b"), broken}} {
		o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(objects...) }, apply.Owns(&corev1.ConfigMap{}))
		err := o.settle(shop)
		if caught := (*ctrlkit.PanicError)(nil); !errors.As(err, &caught) {
			t.Errorf("with %d objects: %v", len(objects)-1, err)
		}
	}
}

func newJob(name, image string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		BackoffLimit: ptr.To[int32](1),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: image}},
		}},
	}}
}

// The objects of a wave are written when those before are ready, and deleted in reverse order.
func TestWaves(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
		set.Add(newConfigMap("last"), apply.Wave(2))
		set.Add(newJob("migration", "busybox:1"), apply.Wave(-1))
		set.Add(newDeployment("web", 1), apply.NoWait)
	}, apply.Owns(&corev1.ConfigMap{}, &batchv1.Job{}, &appsv1.Deployment{}), apply.DeleteInOrder())
	exists := func() string {
		var text string
		for _, obj := range []client.Object{newJob("migration", ""), newDeployment("web", 1), newConfigMap("last")} {
			if o.get(obj, obj.GetName()) && obj.GetDeletionTimestamp() == nil {
				text += " " + obj.GetName()
			}
		}
		return text
	}
	o.settle(shop)
	if got, want := exists(), " migration"; got != want {
		t.Errorf("exists:%s, want%s", got, want)
	}
	if got, want := o.condition(shop), "False NotAllReady: 0 of 3 ready: ConfigMap last: waits for the objects of an earlier wave to be ready"; got == want {
		t.Errorf("condition %q names what waits for the Job, not the Job", got)
	}
	o.setStatus(newJob("migration", ""), `{"startTime":"2030-01-01T00:00:00Z","completionTime":"2030-01-01T00:00:01Z","succeeded":1,"uncountedTerminatedPods":{},
		"conditions":[{"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True","lastTransitionTime":"2030-01-01T00:00:01Z"}]}`)
	o.mustSettle(shop)
	if got, want := exists(), " migration web last"; got != want {
		t.Errorf("exists:%s, want%s", got, want)
	}
	o.patch(newDeployment("web", 1), `{"metadata":{"finalizers":["example.com/hold"]}}`)
	o.delete(shop)
	var order []string
	for range 6 {
		o.reconcile(shop)
		if now := exists(); len(order) == 0 || order[len(order)-1] != now {
			order = append(order, now)
		}
	}
	if got, want := strings.Join(order, ";"), " migration web; migration"; got != want {
		t.Errorf("deleted in the order %q, want %q: web is held", got, want)
	}
	o.patch(newDeployment("web", 1), `{"metadata":{"finalizers":null}}`)
	o.settle(shop)
	if got := exists(); got != "" || o.get(&Shop{}, "shop") {
		t.Errorf("left:%s", got)
	}
}
