// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	"github.com/ctrlkit/ctrlkit/step"
)

// A Site stands for the kind of an operator.
type Site = corev1.ReplicationController

// A Deployment and its Service, after a Job that has to complete first, and that is run again when
// its template changes.
func ExampleChildren() {
	workload := apply.Children("Workload", func(_ context.Context, req *step.Request[*Site], want *apply.Set) error {
		want.Add(deployment(req.Object), service(req.Object))
		want.Add(migration(req.Object), apply.Wave(-1), apply.Replace)
		return nil
	}, apply.Owns(&appsv1.Deployment{}, &corev1.Service{}, &batchv1.Job{}))

	fmt.Println(workload.Name)
	// Output: Workload
}

// A ConfigMap that a step keeps and reads.
func ExampleEnsure() {
	settings := step.Step[*Shop]{Name: "Settings", Do: func(ctx context.Context, req *step.Request[*Shop]) error {
		child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name + "-settings"}}
		child.Data = map[string]string{"size": fmt.Sprint(req.Object.Spec.Size)}
		return apply.Ensure(ctx, req, child)
	}}

	fmt.Println(settings.Name)
	// Output: Settings
}

// What a set would do, as a test sees it.
func ExamplePlanFor() {
	_ = func(t *testing.T) {
		site := &Site{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
		req := ctrlkittest.NewRequest(t, site, ctrlkittest.WithObjects(foreign))

		plan, err := apply.PlanFor(t.Context(), req, parts)
		if err != nil {
			t.Fatal(err)
		}
		want := `create   Service default/shop
refuse   ConfigMap default/shop: exists, has no owner and is not ours
`
		if got := plan.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The example is true.
func TestExamplePlan(t *testing.T) {
	req := ctrlkittest.NewRequest(t, &Site{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		ctrlkittest.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}))
	plan, err := apply.PlanFor(t.Context(), req, parts)
	if want := "create   Service default/shop\nrefuse   ConfigMap default/shop: exists, has no owner and is not ours\n"; err != nil || plan.String() != want {
		t.Errorf("got %v and error %v", plan, err)
	}
}

// parts are a Service, and a ConfigMap as an apply configuration of client-go.
var parts = apply.Children("Parts", func(_ context.Context, req *step.Request[*Site], want *apply.Set) error {
	want.Add(service(req.Object))
	want.Add(corev1ac.ConfigMap(req.Object.Name, req.Object.Namespace).WithData(map[string]string{"color": "red"}))
	return nil
}, apply.Owns(&corev1.ConfigMap{}, &corev1.Service{}))

// In an engine. Complete also watches the kinds that the set declares.
func ExampleOwns() {
	_ = func(mgr ctrl.Manager) error {
		engine, err := step.New(step.Options[*Site]{Name: "site", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader()},
			apply.Children("Workload", func(_ context.Context, req *step.Request[*Site], want *apply.Set) error {
				want.Add(deployment(req.Object), service(req.Object))
				return nil
			}, apply.Owns(&appsv1.Deployment{}, &corev1.Service{})),
		)
		if err != nil {
			return err
		}
		return engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&Site{}))
	}
}

func labelsOf(site *Site) map[string]string { return map[string]string{"site": site.Name} }

func template(site *Site) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labelsOf(site)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1.29"}}},
	}
}

func deployment(site *Site) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: site.Name},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labelsOf(site)}, Template: template(site)},
	}
}

func service(site *Site) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: site.Name},
		Spec:       corev1.ServiceSpec{Selector: labelsOf(site), Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func migration(site *Site) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: site.Name + "-migrate"}, Spec: batchv1.JobSpec{Template: template(site)}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	return job
}

// A migration runs once for each image, and the Deployment of that image comes after it.
func ExampleOnce() {
	_ = apply.Children("Workload",
		func(_ context.Context, req *step.Request[*Site], want *apply.Set) error {
			job := migration(req.Object)
			want.Add(job, apply.Once)
			return nil
		}, apply.Owns(&batchv1.Job{}))
}

// The Pods of a site are replaced when its password changes.
func ExampleRestartOn() {
	_ = apply.Children("Workload",
		func(ctx context.Context, req *step.Request[*Site], want *apply.Set) error {
			credentials, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: req.Object.Name})
			if err != nil {
				return err
			}
			want.Add(deployment(req.Object), apply.RestartOn(credentials))
			return nil
		}, apply.Owns(&appsv1.Deployment{}))
}

// An installer: a set that no object owns, under a name. It is called until nothing is lacking.
func ExampleApplier() {
	_ = func(ctx context.Context, c client.Client, objects []any) (*apply.Status, error) {
		var want apply.Set
		want.Add(objects...)
		installer := &apply.Applier{Client: c, FieldOwner: "installer"}
		status, err := installer.Apply(ctx, client.ObjectKey{Namespace: "platform", Name: "monitoring"}, &want)
		return status, err
	}
}

// Children in another cluster.
func ExampleChildrenIn() {
	_ = func(edge *apply.Applier) step.Step[*Site] {
		place := func(_ context.Context, req *step.Request[*Site]) (apply.Place, error) {
			return apply.Place{Applier: edge, Name: client.ObjectKeyFromObject(req.Object)}, nil
		}
		return apply.ChildrenIn("Workload", place, func(_ context.Context, req *step.Request[*Site], want *apply.Set) error {
			want.Add(deployment(req.Object), service(req.Object))
			return nil
		})
	}
}
