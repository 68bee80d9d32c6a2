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
	networkingv1 "k8s.io/api/networking/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites/status,verbs=patch
// +kubebuilder:rbac:groups=web.ctrlkit.dev,resources=websites/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=website-operator paths=. output:rbac:dir=config/rbac
//go:generate go tool ctrlkit generate finalizer-policy --finalizer web.ctrlkit.dev/website --output config/admission/policy.yaml websites.v1.web.ctrlkit.dev

var options = step.Options[*v1.Website]{Name: "website", SkipUnchanged: true}

// control returns what adds the controller of Websites to a manager.
func control(dns DNS) func(ctrl.Manager) error {
	return func(mgr ctrl.Manager) error {
		return step.Control(mgr, options, readSecret, newParts(), newRecord(dns))
	}
}

// newRecord returns the step that keeps the DNS record of a Website.
func newRecord(dns DNS) step.Step[*v1.Website] {
	return step.Step[*v1.Website]{Name: "DNS", Do: dnsRecord{dns}.ensure, Cleanup: dnsRecord{dns}.remove}
}

// readSecret waits for the credentials, and follows their changes.
var readSecret = step.Step[*v1.Website]{
	Name: "Credentials", Do: readCredentials,
	Watches: func() []step.Watch {
		return []step.Watch{step.WatchNamed(&corev1.Secret{}, func(site *v1.Website) []client.ObjectKey {
			return []client.ObjectKey{{Name: site.Spec.CredentialsSecret}}
		})}
	},
}

// credentials is the hash of the Secret, which readCredentials passes to the Deployment.
var credentials = step.NewKey[string]("hash of the credentials")

func readCredentials(ctx context.Context, req *step.Request[*v1.Website]) error {
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, client.ObjectKey{Name: req.Object.Spec.CredentialsSecret})
	if err != nil {
		return err
	}
	step.Put(req, credentials, fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, secret.Data)))) // fmt orders the keys
	return nil
}

// newParts returns the step that keeps the objects of a Website. The Deployment needs those before it to exist, and the Ingress
// leads to Pods that can answer. A part that the spec does not ask for any more is deleted.
func newParts() step.Step[*v1.Website] {
	return apply.Children("Parts", wantParts, apply.DeleteInOrder(),
		apply.Owns(&corev1.ConfigMap{}, &corev1.Service{}, &appsv1.Deployment{}, &networkingv1.Ingress{}),
		apply.Tracks(&schedulingv1.PriorityClass{})) // cluster-scoped: it cannot have an owner reference
}

func wantParts(_ context.Context, req *step.Request[*v1.Website], want *apply.Set) error {
	site := req.Object
	hash, _ := step.Lookup(req, credentials)
	want.Add(newConfigMap(site), newService(site))
	if site.Spec.Priority != nil {
		want.Add(newPriorityClass(site))
	}
	want.Add(newDeployment(site, hash), apply.Wave(1))
	if site.Spec.Public {
		want.Add(newIngress(site), apply.Wave(2))
	}
	return nil
}

func newConfigMap(site *v1.Website) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Data: site.Spec.Content}
}

func newService(site *v1.Website) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Spec: corev1.ServiceSpec{
		Selector: labelsOf(site), Ports: []corev1.ServicePort{{Port: 80}},
	}}
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
	if site.Spec.Priority != nil {
		pod.Spec.PriorityClassName = priorityClassOf(site)
	}
	pod.Labels, pod.Annotations = labelsOf(site), map[string]string{"web.ctrlkit.dev/credentials": credentialsHash}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Spec: appsv1.DeploymentSpec{
		Replicas: site.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: labelsOf(site)}, Template: pod,
	}}
}

func newIngress(site *v1.Website) *networkingv1.Ingress {
	service := &networkingv1.IngressServiceBackend{Name: site.Name, Port: networkingv1.ServiceBackendPort{Number: 80}}
	paths := &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{
		{Path: "/", PathType: new(networkingv1.PathTypePrefix), Backend: networkingv1.IngressBackend{Service: service}},
	}}
	rule := networkingv1.IngressRule{Host: site.Spec.Host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: paths}}
	return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: site.Name}, Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{rule}}}
}

func newPriorityClass(site *v1.Website) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: priorityClassOf(site)}, Value: *site.Spec.Priority}
}

// priorityClassOf names the PriorityClass of a Website. Namespaces have no dots, so that no two
// Websites share one. The value can't be changed, so that another value has another name: the new
// class exists before the Deployment uses it, and the old one until then.
func priorityClassOf(site *v1.Website) string {
	return fmt.Sprintf("%s.%s-%d", site.Namespace, site.Name, *site.Spec.Priority)
}

func labelsOf(site *v1.Website) map[string]string {
	return map[string]string{"web.ctrlkit.dev/website": site.Name}
}

type dnsRecord struct{ dns DNS }

func (r dnsRecord) ensure(ctx context.Context, req *step.Request[*v1.Website]) error {
	if err := req.EnsureFresh(ctx); err != nil { // or a Website that is gone would get a record
		return err
	}
	if err := r.dns.Ensure(ctx, req.Object.Spec.Host, req.Object.Name+"."+req.Object.Namespace+".svc", req.Object); err != nil {
		return err
	}
	return ctrlkit.RequeueWithin(10 * time.Minute) // no watch reports changes of the record
}

func (r dnsRecord) remove(ctx context.Context, req *step.Request[*v1.Website]) error {
	return r.dns.Remove(ctx, req.Object.Spec.Host, req.Object)
}
