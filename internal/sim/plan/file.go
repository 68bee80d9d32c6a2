// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
)

// File is a cluster that was written to files, as "kubectl get -o yaml" does, or that consists of
// samples: objects without UIDs and resource versions get some.
type File struct {
	objects map[schema.GroupKind][]*unstructured.Unstructured
	kinds   *apiserver.Server // knows which resource is of which kind

	mu     sync.Mutex // guards what follows
	copied int
	read   map[schema.GroupKind]bool
	lacks  map[string]string
}

// NewFile returns the cluster that manifests describe.
func NewFile(manifests []run.Manifest) (*File, error) {
	f := &File{objects: map[schema.GroupKind][]*unstructured.Unstructured{}, read: map[schema.GroupKind]bool{}, kinds: apiserver.New(apiserver.Options{})}
	for i, m := range manifests {
		obj := m.Object.DeepCopy()
		if obj.GetName() == "" {
			return nil, fmt.Errorf("%s: the %s has no name", m.Where(), obj.GetKind())
		}
		if obj.GetUID() == "" {
			obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1)))
		}
		if obj.GetResourceVersion() == "" {
			obj.SetResourceVersion(strconv.Itoa(i + 1))
		}
		if created := obj.GetCreationTimestamp(); created.IsZero() {
			_ = unstructured.SetNestedField(obj.Object, "2020-01-01T00:00:00Z", "metadata", "creationTimestamp") //nolint:errcheck // metadata is a map: it has a name
		}
		if obj.GetKind() == "CustomResourceDefinition" {
			if err := f.kinds.Import(obj.DeepCopy().Object); err != nil {
				return nil, fmt.Errorf("%s: %w", m.Where(), err)
			}
		}
		gk := obj.GroupVersionKind().GroupKind()
		f.objects[gk] = append(f.objects[gk], obj)
	}
	for gk, list := range f.objects {
		gvr, namespaced, err := f.kinds.ResourceFor(list[0].GroupVersionKind())
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w: put its CustomResourceDefinition into the file", gk.Kind, list[0].GetName(), err)
		}
		for _, obj := range list {
			if namespaced && obj.GetNamespace() == "" {
				return nil, fmt.Errorf("%s %q has no namespace", gvr.Resource, obj.GetName())
			}
		}
	}
	return f, nil
}

// Read returns the objects of a resource.
func (f *File) Read(_ context.Context, resource schema.GroupVersionResource) ([]map[string]any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var contents []map[string]any
	for gk, list := range f.objects {
		gvr, _, err := f.kinds.ResourceFor(list[0].GroupVersionKind())
		if err != nil || gvr.GroupResource() != resource.GroupResource() {
			continue
		}
		f.read[gk] = true
		for _, obj := range list {
			contents = append(contents, obj.DeepCopy().Object)
		}
	}
	f.copied += len(contents)
	return contents, nil
}

// HasRead reports whether the objects of a kind were read.
func (f *File) HasRead(gk schema.GroupKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read[gk]
}

// Dependents returns what is owned, or in a namespace.
func (f *File) Dependents(_ context.Context, owners []types.UID) ([]schema.GroupVersionResource, []types.UID, error) {
	wanted := map[types.UID]bool{}
	for _, uid := range owners {
		wanted[uid] = true
	}
	inside := map[string]bool{} // the names of wanted namespaces
	for _, namespace := range f.objects[schema.GroupKind{Kind: "Namespace"}] {
		if wanted[namespace.GetUID()] {
			inside[namespace.GetName()] = true
		}
	}
	resources, uids := map[schema.GroupVersionResource]bool{}, []types.UID{}
	for _, list := range f.objects {
		gvr, _, err := f.kinds.ResourceFor(list[0].GroupVersionKind())
		if err != nil {
			continue // NewFile has refused it
		}
		for _, obj := range list {
			if inside[obj.GetNamespace()] || slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return wanted[o.UID] }) {
				resources[gvr] = true
				uids = append(uids, obj.GetUID())
			}
		}
	}
	return sorted(resources), uids, nil
}

// Lacks says what of the cluster could not be read when the file was made, each as "what: why".
func (f *File) Lacks(unread []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lacks = map[string]string{}
	for _, text := range unread {
		what, why, _ := strings.Cut(text, ": ")
		f.lacks[what] = why
	}
}

// Refused returns what the file is known to lack. Anything else that is not in it does not exist.
func (f *File) Refused() map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.lacks)
}

// Lists returns how many objects were copied.
func (f *File) Lists() (requests, objects int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return 0, f.copied
}

// ResourceNamed returns the resource of a kind, by its name in any case or by that of its resource,
// and whether it is namespaced.
func (f *File) ResourceNamed(kind string) (schema.GroupVersionResource, bool, error) {
	for gk, list := range f.objects {
		gvr, namespaced, err := f.kinds.ResourceFor(list[0].GroupVersionKind())
		if err == nil && (strings.EqualFold(gk.Kind, kind) || strings.EqualFold(gvr.Resource, kind)) {
			return gvr, namespaced, nil
		}
	}
	return schema.GroupVersionResource{}, false, fmt.Errorf("the files have no object of a kind %s", kind)
}
