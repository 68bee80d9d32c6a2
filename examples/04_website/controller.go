// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites/status,verbs=patch
// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=website-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer web.ctrlkit.dev/website --output config/admission/policy.yaml websites.v1.web.ctrlkit.dev

// addController adds the controller of Websites to a manager.
func addController(mgr ctrl.Manager, dns DNS, observers ...journal.Observer) error {
	engine, err := step.New(step.Options[*v1.Website]{
		Name: "website", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("website-operator"),
		Observers: observers, SkipUnchanged: true,
	},
		step.Func("Credentials", readCredentials),
		step.Group("Parts",
			step.Func("ConfigMap", ensureConfigMap), step.Func("Service", ensureService), step.Func("Deployment", ensureDeployment),
			step.External("DNS", dnsRecord{dns}.ensure, dnsRecord{dns}.remove),
		),
	)
	if err != nil {
		return err
	}
	b := ctrl.NewControllerManagedBy(mgr).For(&v1.Website{}).Owns(&corev1.ConfigMap{}).Owns(&corev1.Service{}).Owns(&appsv1.Deployment{})
	return engine.Complete(engine.WatchNamed(b, &corev1.Secret{}, func(site *v1.Website) []client.ObjectKey {
		return []client.ObjectKey{{Name: site.Spec.CredentialsSecret}}
	}))
}

// credentials is the hash of the Secret, which readCredentials passes to ensureDeployment.
var credentials = step.NewKey[string]("hash of the credentials")

func readCredentials(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: req.Object.Spec.CredentialsSecret})
	if err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	step.Put(req, credentials, fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, secret.Data)))) // fmt orders the keys
	return ctrlkit.NoRequeue()
}

func ensureConfigMap(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	content := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name}, Data: req.Object.Spec.Content}
	return ctrlkit.RequeueIfError(step.EnsureChild(ctx, req, content))
}

func ensureService(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	spec := corev1.ServiceSpec{Selector: labelsOf(req.Object), Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}
	return ctrlkit.RequeueIfError(step.EnsureChild(ctx, req, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: req.Object.Name}, Spec: spec}))
}

// ensureDeployment also waits for the replicas: the Website is not Ready before they are available.
func ensureDeployment(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	hash, _ := step.Lookup(req, credentials)
	deployment := newDeployment(req.Object, hash)
	if err := step.EnsureChild(ctx, req, deployment); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	want, now := *deployment.Spec.Replicas, deployment.Status
	if now.ObservedGeneration < deployment.Generation || now.UpdatedReplicas < want || now.AvailableReplicas < want {
		return ctrlkit.WaitFor(fmt.Sprintf("the Deployment: %d of %d replicas available", min(now.UpdatedReplicas, now.AvailableReplicas), want))
	}
	return ctrlkit.NoRequeue()
}

func newDeployment(site *v1.Website, credentialsHash string) *appsv1.Deployment {
	content := corev1.Volume{Name: "content"}
	content.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Name}}
	environment := &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: site.Spec.CredentialsSecret}}
	server := corev1.Container{
		Name: "web", Image: site.Spec.Image, EnvFrom: []corev1.EnvFromSource{{SecretRef: environment}},
		VolumeMounts: []corev1.VolumeMount{{Name: content.Name, MountPath: "/usr/share/nginx/html"}},
	}
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{server}, Volumes: []corev1.Volume{content}}}
	pod.Labels, pod.Annotations = labelsOf(site), map[string]string{"web.ctrlkit.dev/credentials": credentialsHash}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Spec: appsv1.DeploymentSpec{
		Replicas: site.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labelsOf(site)}, Template: pod,
	}}
}

func labelsOf(site *v1.Website) map[string]string {
	return map[string]string{"web.ctrlkit.dev/website": site.Name}
}

type dnsRecord struct{ dns DNS }

func (r dnsRecord) ensure(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	if err := r.dns.Ensure(ctx, req.Object.Spec.Host, req.Object.Name+"."+req.Object.Namespace+".svc", req.Object); err != nil {
		return ctrlkit.RequeueIfError(err)
	}
	return ctrlkit.ContinueAndRequeueAfter(10 * time.Minute) // no watch reports changes of the record
}

func (r dnsRecord) remove(ctx context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
	return ctrlkit.RequeueIfError(r.dns.Remove(ctx, req.Object.Spec.Host, req.Object))
}
