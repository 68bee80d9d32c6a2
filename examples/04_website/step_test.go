// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/ctrlkittest"
	v1 "github.com/ctrlkit/ctrlkit/examples/04_website/api/v1"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

func kit(t *testing.T, objects ...client.Object) []ctrlkittest.Option {
	return []ctrlkittest.Option{
		ctrlkittest.WithScheme(simScheme(t)), ctrlkittest.WithCRDs("config/crd/bases"), ctrlkittest.WithObjects(objects...),
		ctrlkittest.WithSetup(func(req *step.Request[*v1.Website]) { step.Put(req, credentials, "abc") }),
	}
}

func TestCredentials(t *testing.T) {
	hashOf := func(secret *corev1.Secret) (hash string) {
		t.Helper()
		got := ctrlkittest.Do(t, step.GroupOrdered("both",
			readSecret,
			step.Step[*v1.Website]{Name: "Look", Do: func(_ context.Context, req *step.Request[*v1.Website]) error {
				hash, _ = step.Lookup(req, credentials)
				return nil
			}},
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
	got := ctrlkittest.Do(t, readSecret, newShop(), kit(t)...)
	if diff := cmp.Diff([]string{"Secret default/credentials"}, got.Waits); diff != "" || got.Passed || got.Err != nil {
		t.Errorf("got %+v; waits (-want +got):\n%s", got, diff)
	}
}

// The Deployment is applied in the same reconcile as what it needs, and the Ingress when the Pods are
// available.
func TestParts(t *testing.T) {
	plain := []string{"ConfigMap default/shop", "Deployment default/shop", "Service default/shop"}
	for _, tt := range []struct {
		name      string
		change    func(*v1.WebsiteSpec)
		applied   []string
		condition string
	}{
		{"plain", func(*v1.WebsiteSpec) {}, plain, "False NotAllReady: 2 of 3 ready: Deployment shop"},
		{"public", func(s *v1.WebsiteSpec) { s.Public = true }, plain, "False NotAllReady: 2 of 4 ready: Deployment shop"},
		{"with a priority", func(s *v1.WebsiteSpec) { s.Priority = new(int32(100)) }, []string{"ConfigMap default/shop", "Deployment default/shop", "PriorityClass default.shop-100", "Service default/shop"}, "False NotAllReady: 3 of 4 ready: Deployment shop"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			site := newShop()
			tt.change(&site.Spec)
			got := ctrlkittest.Do(t, newParts(), site, kit(t)...)
			if diff := cmp.Diff(tt.applied, appliedOf(got)); diff != "" || got.Err != nil {
				t.Errorf("got %+v; applied (-want +got):\n%s", got, diff)
			}
			if condition := got.Conditions["PartsReady"]; !strings.HasPrefix(condition, tt.condition) || got.Passed {
				t.Errorf("PartsReady is %q, want %q", condition, tt.condition)
			}
		})
	}
}

// appliedOf returns the objects that a step has applied, sorted.
func appliedOf[T client.Object](result *ctrlkittest.Result[T]) []string {
	var names []string
	for _, write := range result.Writes {
		if rest, ok := strings.CutPrefix(write, "apply "); ok {
			name, _, _ := strings.Cut(rest, " (")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestPartsOfOthersAreLeftAlone(t *testing.T) {
	theirs := metav1.ObjectMeta{Namespace: "default", Name: "shop"}
	site := newShop()
	site.Spec.Priority = new(int32(100))
	all := []string{"ConfigMap default/shop", "PriorityClass default.shop-100", "Service default/shop"}
	for i, there := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: theirs},
		newPriorityClass(site),
		&corev1.Service{ObjectMeta: theirs, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 81}}}},
	} {
		got := ctrlkittest.Do(t, newParts(), site.DeepCopy(), kit(t, there)...)
		others := slices.Delete(slices.Clone(all), i, i+1)
		if diff := cmp.Diff(others, appliedOf(got)); diff != "" || got.Class != failure.ClassTerminal || got.Passed {
			t.Errorf("%T: got %+v; applied (-want +got):\n%s", there, got, diff)
		}
	}
}

// A stale cache may show a Website that is gone: nothing would remove its record.
func TestNoRecordForWhatIsGone(t *testing.T) {
	dns, reads := newMemoryDNS(), 0
	gone := ctrlkittest.WithInterceptor(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if reads++; reads > 1 { // the first is that of the cache
				return apierrors.NewNotFound(v1.GroupVersion.WithResource("websites").GroupResource(), key.Name)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	got := ctrlkittest.Do(t, newRecord(dns), newShop(), append(kit(t), gone)...)
	if got.Passed || dns.target("shop.example.com") != "" {
		t.Errorf("got %+v and target %q, want no record", got, dns.target("shop.example.com"))
	}
}

func TestRecord(t *testing.T) {
	dns := newMemoryDNS()
	record := newRecord(dns)
	if got := ctrlkittest.Do(t, record, newShop(), kit(t)...); !got.Passed || got.After != 10*time.Minute || dns.target("shop.example.com") != "shop.default.svc" {
		t.Errorf("got %+v and target %q", got, dns.target("shop.example.com"))
	}

	other := newShop()
	other.Name = "other"
	got := ctrlkittest.Do(t, record, other, kit(t)...)
	if want := "False HostTaken: DNS: " + ErrHostTaken.Error(); got.Conditions[condition.Ready] != want || got.Class != failure.ClassTerminal {
		t.Errorf("another Website with the host: got %+v, want Ready %s", got, want)
	}
	if got := ctrlkittest.Cleanup(t, record, other, kit(t)...); got.Object != nil || dns.target("shop.example.com") == "" {
		t.Errorf("without the other Website: got %+v and target %q, want that the record stays", got, dns.target("shop.example.com"))
	}
	if got := ctrlkittest.Cleanup(t, record, newShop(), kit(t)...); got.Object != nil || dns.target("shop.example.com") != "" {
		t.Errorf("without the Website: got %+v and target %q", got, dns.target("shop.example.com"))
	}
}
