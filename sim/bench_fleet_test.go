// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sim

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/ctrlkit/ctrlkit/sim/player"
	"github.com/ctrlkit/ctrlkit/sim/testdata/fleet"
)

// admiral keeps the Jobs, the Service and the ConfigMap of a Fleet, as JobSet's controller does.
type admiral struct{ client.Client }

const (
	fleetLabel = "bench.ctrlkit.dev/fleet"
	groupLabel = "bench.ctrlkit.dev/group"
	byFleet    = ".metadata.controller"
)

func (a admiral) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	f := &fleet.Fleet{}
	if err := a.Get(ctx, req.NamespacedName, f); err != nil || !f.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	jobs := &batchv1.JobList{}
	if err := a.List(ctx, jobs, client.InNamespace(f.Namespace), client.MatchingFields{byFleet: string(f.UID)}); err != nil {
		return ctrl.Result{}, err
	}
	before := f.DeepCopy()
	if err := a.createOwned(ctx, f, serviceOf(f)); err != nil {
		return ctrl.Result{}, err
	}
	if err := a.createOwned(ctx, f, configOf(f)); err != nil {
		return ctrl.Result{}, err
	}
	known := map[string]*batchv1.Job{}
	for i := range jobs.Items {
		known[jobs.Items[i].Name] = &jobs.Items[i]
	}
	for _, g := range f.Spec.Groups {
		for i := range g.Replicas {
			job := jobOf(f, g, i)
			there := known[job.Name]
			switch {
			case there == nil:
				if err := a.createOwned(ctx, f, job); err != nil {
					return ctrl.Result{}, err
				}
			case *there.Spec.Suspend != f.Spec.Suspend:
				there.Spec.Suspend = &f.Spec.Suspend
				if err := a.Update(ctx, there); err != nil {
					return ctrl.Result{}, err
				}
			}
		}
	}
	setStatus(f, jobs.Items)
	if reflect.DeepEqual(f.Status, before.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, a.Status().Update(ctx, f)
}

func setStatus(f *fleet.Fleet, jobs []batchv1.Job) {
	f.Status.Groups = nil
	done := metav1.Condition{Type: "Completed", Status: metav1.ConditionFalse, Reason: "Running", Message: "some Jobs are not complete", ObservedGeneration: f.Generation}
	for _, g := range f.Spec.Groups {
		status := fleet.GroupStatus{Name: g.Name}
		for i := range jobs {
			if jobs[i].Labels[groupLabel] == g.Name {
				status.Active++
				status.Ready += jobs[i].Status.Active
				status.Succeeded += jobs[i].Status.Succeeded
				status.Failed += jobs[i].Status.Failed
			}
		}
		f.Status.Groups = append(f.Status.Groups, status)
	}
	meta.SetStatusCondition(&f.Status.Conditions, done)
}

func (a admiral) createOwned(ctx context.Context, f *fleet.Fleet, obj client.Object) error {
	there := obj.DeepCopyObject().(client.Object)
	if err := a.Get(ctx, client.ObjectKeyFromObject(obj), there); !apierrors.IsNotFound(err) {
		return err
	}
	if err := ctrl.SetControllerReference(f, obj, a.Scheme()); err != nil {
		return err
	}
	return a.Create(ctx, obj)
}

func labelsOf(f *fleet.Fleet) map[string]string { return map[string]string{fleetLabel: f.Name} }

func serviceOf(f *fleet.Fleet) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace, Labels: labelsOf(f)},
		Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: labelsOf(f), PublishNotReadyAddresses: true},
	}
}

func configOf(f *fleet.Fleet) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name, Namespace: f.Namespace, Labels: labelsOf(f)},
		Data:       map[string]string{"groups": fmt.Sprint(len(f.Spec.Groups))},
	}
}

func jobOf(f *fleet.Fleet, g fleet.Group, i int32) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: *g.Template.ObjectMeta.DeepCopy(), Spec: *g.Template.Spec.DeepCopy()}
	job.Name, job.Namespace, job.Labels = fmt.Sprintf("%s-%s-%d", f.Name, g.Name, i), f.Namespace, labelsOf(f)
	job.Labels[groupLabel] = g.Name
	job.Spec.Suspend = &f.Spec.Suspend
	job.Spec.Template.Labels = labelsOf(f)
	job.Spec.Template.Spec.Subdomain = f.Name
	return job
}

func (a admiral) setup(mgr ctrl.Manager) error {
	index := func(obj client.Object) []string {
		if owner := metav1.GetControllerOf(obj); owner != nil && owner.Kind == "Fleet" {
			return []string{string(owner.UID)}
		}
		return nil
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, byFleet, index); err != nil {
		return err
	}
	toFleet := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []ctrl.Request {
		if name := obj.GetLabels()[fleetLabel]; name != "" {
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: name}}}
		}
		return nil
	})
	return ctrl.NewControllerManagedBy(mgr).For(&fleet.Fleet{}).Owns(&batchv1.Job{}).Owns(&corev1.Service{}).
		Owns(&corev1.ConfigMap{}).Watches(&corev1.Pod{}, toFleet).Complete(a)
}

// benchGroup returns a group of a Fleet whose template has what templates of Jobs usually have.
func benchGroup(name string) fleet.Group {
	limits := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi")}
	container := corev1.Container{
		Name: "main", Image: "registry.example.com/trainer:1.2", Command: []string{"/bin/train"}, Args: []string{"--epochs=3", "--data=/data"},
		Env: []corev1.EnvVar{
			{Name: "GROUP", Value: name},
			{Name: "POD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
		},
		Ports:        []corev1.ContainerPort{{Name: "grpc", ContainerPort: 8080}},
		Resources:    corev1.ResourceRequirements{Limits: limits, Requests: limits},
		VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		ReadinessProbe: &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)}},
		},
	}
	return fleet.Group{Name: name, Replicas: 1, Template: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
		Parallelism: new(int32(4)), Completions: new(int32(4)), CompletionMode: new(batchv1.IndexedCompletion), BackoffLimit: new(int32(0)),
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		}},
	}}}
}

// describe gives each property a description of a usual length: that of a real definition is mostly
// such text, which the one in testdata does without.
func describe(schema *apiextensionsv1.JSONSchemaProps) {
	schema.Description = strings.Repeat("What the field is for and when to set it. ", 5)
	for name, property := range schema.Properties {
		if schema.Type == "object" && (name == "apiVersion" || name == "kind" || name == "metadata") {
			continue
		}
		describe(&property)
		schema.Properties[name] = property
	}
	if schema.Items != nil {
		describe(schema.Items.Schema)
	}
}

func fleetWorkload(t *testing.T) *Workload {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, fleet.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet.Fleet{
		ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"},
		Spec:       fleet.FleetSpec{Groups: []fleet.Group{benchGroup("leader"), benchGroup("workers")}},
	}
	return &Workload{
		Scheme: scheme,
		CRDs:   []string{"testdata/fleet/crd"},
		Operator: Manager(func(mgr ctrl.Manager, _ *Process) error {
			return admiral{mgr.GetClient()}.setup(mgr)
		}),
		Script: func(w *World) {
			w.Create(f)
			w.Settle()
			Update(w, f, func(f *fleet.Fleet) { f.Spec.Suspend = true })
			w.Settle()
			w.Delete(f)
			w.Settle()
		},
	}
}

// How many plans of an operator of JobSet's size one core runs in a second, without the controllers of
// Jobs and Pods and with them: GOMAXPROCS=1 go test -run TestPlansPerSecondOfFleets -v ./sim -measure.
func TestPlansPerSecondOfFleets(t *testing.T) {
	if !*measure {
		t.Skip("it measures: -measure")
	}
	for name, players := range map[string]player.Set{"alone": player.None(), "played": player.Defaults()} {
		t.Run(name, func(t *testing.T) {
			workload := fleetWorkload(t)
			workload.Players = players
			measurePlans(t, workload, 9, 1)
		})
	}
}
