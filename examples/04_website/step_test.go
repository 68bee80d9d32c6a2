// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
	"github.com/ctrlkit/ctrlkit/step/steptest"
)

func kit(t *testing.T, objects ...client.Object) []steptest.Option {
	return []steptest.Option{
		steptest.WithScheme(simScheme(t)), steptest.WithCRDs("config/crd/bases"), steptest.WithObjects(objects...),
		steptest.WithSetup(func(req *step.Request[*v1.Website]) { step.Put(req, credentials, "abc") }),
	}
}

func TestCredentials(t *testing.T) {
	hashOf := func(secret *corev1.Secret) (hash string) {
		t.Helper()
		got := steptest.Do(t, step.GroupOrdered("both",
			step.Func("Credentials", readCredentials),
			step.Func("Look", func(_ context.Context, req *step.Request[*v1.Website]) (ctrl.Result, error) {
				hash, _ = step.Lookup(req, credentials)
				return ctrlkit.NoRequeue()
			}),
		), newShop(), kit(t, secret)...)
		if !got.Passed || got.Err != nil {
			t.Fatalf("got %+v", got)
		}
		return hash
	}
	secret := newSecret()
	first, again := hashOf(secret), hashOf(secret)
	secret.Data["DB_PASSWORD"] = []byte("other")
	if other := hashOf(secret); first != again || first == other || first == "" {
		t.Errorf("hashes %q, %q of the same Secret, and %q of another", first, again, other)
	}
}

func TestCredentialsAreWaitedFor(t *testing.T) {
	got := steptest.Do(t, step.Func("Credentials", readCredentials), newShop(), kit(t)...)
	if diff := cmp.Diff([]string{"Secret default/credentials"}, got.Waits); diff != "" || got.Passed || got.Err != nil {
		t.Errorf("got %+v; waits (-want +got):\n%s", got, diff)
	}
}

func TestDeployment(t *testing.T) {
	ours := newDeployment(newShop(), "abc")
	ours.Namespace = "default"
	for _, tt := range []struct {
		name   string
		status appsv1.DeploymentStatus
		waits  []string
	}{
		{"nothing is available", appsv1.DeploymentStatus{ObservedGeneration: 1}, []string{"the Deployment: 0 of 3 replicas available"}},
		{"some are", appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 3, AvailableReplicas: 2}, []string{"the Deployment: 2 of 3 replicas available"}},
		{"old ones are", appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 1, AvailableReplicas: 3}, []string{"the Deployment: 1 of 3 replicas available"}},
		{"all are", appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: 3, AvailableReplicas: 3}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			there := ours.DeepCopy()
			there.Generation, there.Status = 1, tt.status
			there.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1.GroupVersion.String(), Kind: "Website", Name: "shop", Controller: new(true)}}
			got := steptest.Do(t, step.Func("Deployment", ensureDeployment), newShop(), kit(t, there)...)
			if diff := cmp.Diff(tt.waits, got.Waits); diff != "" || got.Passed != (tt.waits == nil) || got.Err != nil {
				t.Errorf("got %+v; waits (-want +got):\n%s", got, diff)
			}
		})
	}
}

func TestChildrenOfOthersAreLeftAlone(t *testing.T) {
	theirs := metav1.ObjectMeta{Namespace: "default", Name: "shop"}
	for _, tt := range []struct {
		do    func(context.Context, *step.Request[*v1.Website]) (ctrl.Result, error)
		there client.Object
	}{
		{ensureConfigMap, &corev1.ConfigMap{ObjectMeta: theirs}},
		{ensureService, &corev1.Service{ObjectMeta: theirs, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81}}}}},
	} {
		got := steptest.Do(t, step.Func("Child", tt.do), newShop(), kit(t, tt.there)...)
		if got.Class != failure.ClassTerminal || len(got.Writes) > 0 || got.Passed {
			t.Errorf("%T: got %+v", tt.there, got)
		}
	}
}

func TestRecord(t *testing.T) {
	dns := newMemoryDNS()
	record := step.External("DNS", dnsRecord{dns}.ensure, dnsRecord{dns}.remove)
	if got := steptest.Do(t, record, newShop(), kit(t)...); !got.Passed || got.After != 10*time.Minute || dns.target("shop.example.com") != "shop.default.svc" {
		t.Errorf("got %+v and target %q", got, dns.target("shop.example.com"))
	}

	other := newShop()
	other.Name = "other"
	got := steptest.Do(t, record, other, kit(t)...)
	if want := "False HostTaken: DNS: " + ErrHostTaken.Error(); got.Conditions[condition.Ready] != want || got.Class != failure.ClassTerminal {
		t.Errorf("another Website with the host: got %+v, want Ready %s", got, want)
	}
	if got := steptest.Cleanup(t, record, other, kit(t)...); got.Object != nil || dns.target("shop.example.com") == "" {
		t.Errorf("without the other Website: got %+v and target %q, want that the record stays", got, dns.target("shop.example.com"))
	}
	if got := steptest.Cleanup(t, record, newShop(), kit(t)...); got.Object != nil || dns.target("shop.example.com") != "" {
		t.Errorf("without the Website: got %+v and target %q", got, dns.target("shop.example.com"))
	}
}
