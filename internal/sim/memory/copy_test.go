// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// source is a cluster to copy.
type source struct {
	objects map[schema.GroupResource][]map[string]any
	refused schema.GroupResource

	mu   sync.Mutex // guards read
	read []string
}

func (s *source) Read(_ context.Context, r schema.GroupVersionResource) ([]map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = append(s.read, r.Resource)
	if r.GroupResource() == s.refused {
		return nil, apierrors.NewForbidden(s.refused, "", nil)
	}
	var list []map[string]any
	for _, content := range s.objects[r.GroupResource()] {
		list = append(list, runtime.DeepCopyJSON(content))
	}
	return list, nil
}

func (s *source) Dependents(_ context.Context, owners []types.UID) (resources []schema.GroupVersionResource, uids []types.UID, _ error) {
	for gr, list := range s.objects {
		for _, content := range list {
			obj := &unstructured.Unstructured{Object: content}
			if slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return slices.Contains(owners, o.UID) }) {
				resources, uids = append(resources, gr.WithVersion("v1")), append(uids, obj.GetUID())
			}
		}
	}
	return resources, uids, nil
}

func (s *source) has(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.read, resource)
}

// object returns an object of a source. owner may be empty; it is the name, and the UID, of a
// Deployment.
func object(apiVersion, kind, name, version, owner string) map[string]any {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	obj.SetNamespace("shop")
	obj.SetName(name)
	obj.SetUID(types.UID(name))
	obj.SetResourceVersion(version)
	if owner != "" {
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: owner, UID: types.UID(owner)}})
	}
	return obj.Object
}

func TestCopy(t *testing.T) {
	s := &source{
		objects: map[schema.GroupResource][]map[string]any{
			{Group: "apps", Resource: "deployments"}:           {object("apps/v1", "Deployment", "web", "7000", "")},
			{Resource: "configmaps"}:                           {object("v1", "ConfigMap", "of-web", "6000", "web"), object("v1", "ConfigMap", "free", "6001", "")},
			{Group: "coordination.k8s.io", Resource: "leases"}: {object("coordination.k8s.io/v1", "Lease", "leader", "6002", "")},
		},
		refused: schema.GroupResource{Resource: "secrets"},
	}
	var mu sync.Mutex
	changed := 0
	w, c := start(t, memory.Options{Source: s, Changed: func(change apiserver.Change) {
		mu.Lock()
		defer mu.Unlock()
		if change.Namespace == "shop" || change.Name == "shop" {
			changed++
		}
	}})
	ctx := t.Context()

	d := &appsv1.Deployment{}
	if err := w.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "web"}, d); err != nil || d.UID != "web" || d.ResourceVersion != "7000" {
		t.Fatalf("got UID %q and version %q, %v; want those of the source", d.UID, d.ResourceVersion, err)
	}
	if s.has("configmaps") || s.has("leases") {
		t.Errorf("read %v, want no kind that was not asked for", s.read)
	}
	mu.Lock()
	if changed > 0 {
		t.Errorf("%d changes by reading", changed)
	}
	mu.Unlock()

	if err := w.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Errorf("Secrets: %v, want the answer of the source", err)
	}
	if err := w.Delete(ctx, d); err != nil {
		t.Fatal(err)
	}
	if !s.has("configmaps") {
		t.Error("what the Deployment owns was not read before its deletion")
	}
	names := func() (names []string) {
		for _, o := range c.Objects() {
			if o.Namespace == "shop" && o.Resource.Resource == "configmaps" && o.Name != "kube-root-ca.crt" {
				names = append(names, o.Name)
			}
		}
		return names
	}
	if got := names(); !slices.Equal(got, []string{"free"}) {
		t.Errorf("ConfigMaps after the deletion of their owner: %q, want the free one", got)
	}
	if s.has("leases") {
		t.Error("Leases were copied: the one of the running operator keeps another from working")
	}
	if _, err := c.Do("user", "kubectl", "GET", "/api/v1/namespaces/shop/configmaps/gone", "", nil); !apierrors.IsNotFound(err) {
		t.Errorf("Do: %v, want a status that says not found", err)
	}
}

func TestImportNamesWhatIsWrong(t *testing.T) {
	for name, content := range map[string]map[string]any{
		"no version":      object("v1", "ConfigMap", "a", "", ""),
		"an unknown kind": object("example.com/v1", "Widget", "a", "1", ""),
	} {
		if err := apiserver.New(apiserver.Options{}).Import(content); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
