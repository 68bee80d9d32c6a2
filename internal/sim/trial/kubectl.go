// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

// lastApplied is the annotation in which kubectl keeps what it has applied.
const lastApplied = corev1.LastAppliedConfigAnnotation

// kubectl is the field manager of "kubectl apply".
const kubectl = "kubectl-client-side-apply"

// PathOf returns the path of an object in the API, or that of its collection if name is empty.
func PathOf(resource schema.GroupVersionResource, namespace, name string) string {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + resource.Resource
	if name != "" {
		path += "/" + name
	}
	return path
}

// Apply does to an object of a cluster what "kubectl apply" does, which refuses fields that the kind
// does not have. namespace is that of an object that has none.
func Apply(c *memory.Cluster, obj *unstructured.Unstructured, namespace string) error {
	err := applyWith(c, obj, namespace, metav1.FieldValidationStrict)
	if err != nil {
		if _, fields, unknown := strings.Cut(err.Error(), errUnknown.Error()+": "); unknown {
			return fmt.Errorf("%w: %s", errUnknown, fields) // without the object, which the answer to a patch quotes
		}
	}
	return err
}

// errUnknown is what the API server says of fields that a kind does not have.
var errUnknown = errors.New("strict decoding error")

// ApplySample does the same to an object that may have mistakes: fields that the kind does not have are
// left out, and unknown is called with what kubectl says of them.
func ApplySample(c *memory.Cluster, obj *unstructured.Unstructured, namespace string, unknown func(error)) error {
	err := Apply(c, obj, namespace)
	if !errors.Is(err, errUnknown) {
		return err
	}
	unknown(err)
	return applyWith(c, obj, namespace, metav1.FieldValidationWarn)
}

func applyWith(c *memory.Cluster, obj *unstructured.Unstructured, namespace, validation string) error {
	resource, namespaced, err := c.ResourceFor(obj.GroupVersionKind())
	if err != nil {
		return err
	}
	obj = obj.DeepCopy()
	switch {
	case !namespaced:
		obj.SetNamespace("")
	case obj.GetNamespace() == "":
		obj.SetNamespace(namespace)
	}
	modified, err := annotated(obj)
	if err != nil {
		return err
	}
	path := PathOf(resource, obj.GetNamespace(), obj.GetName())
	query := "?fieldManager=" + kubectl + "&fieldValidation=" + validation
	current, err := c.Do(UserActor, "kubectl", http.MethodGet, path, "", nil)
	if apierrors.IsNotFound(err) {
		_, err = c.Do(UserActor, "kubectl", http.MethodPost, PathOf(resource, obj.GetNamespace(), "")+query, "application/json", modified.Object)
		return err
	}
	if err != nil {
		return err
	}
	patch, kind, err := threeWay(obj.GroupVersionKind(), current, modified)
	if err != nil {
		return fmt.Errorf("comparing it with the one in the cluster: %w", err)
	}
	if string(patch) == "{}" {
		return nil
	}
	_, err = c.Do(UserActor, "kubectl", http.MethodPatch, path+query, string(kind), json.RawMessage(patch))
	return err
}

// annotated returns an object with the annotation that "kubectl apply" adds.
func annotated(obj *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding the object: %w", err)
	}
	modified := obj.DeepCopy()
	annotations := modified.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[lastApplied] = string(data) + "\n"
	modified.SetAnnotations(annotations)
	return modified, nil
}

// threeWay returns the patch that brings an object to what is applied: a strategic one for a kind
// that has a Go type, and a merge patch for any other, as kubectl does.
func threeWay(gvk schema.GroupVersionKind, current, modified *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	original := []byte(current.GetAnnotations()[lastApplied])
	from, err := json.Marshal(current)
	if err != nil {
		return nil, "", err
	}
	to, err := json.Marshal(modified)
	if err != nil {
		return nil, "", err
	}
	if known, err := scheme.Scheme.New(gvk); err == nil {
		meta, err := strategicpatch.NewPatchMetaFromStruct(known)
		if err != nil {
			return nil, "", err
		}
		patch, err := strategicpatch.CreateThreeWayMergePatch(original, to, from, meta, true)
		return patch, types.StrategicMergePatchType, err
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, to, from)
	return patch, types.MergePatchType, err
}

// Delete does to an object of a cluster what "kubectl delete" does, without waiting.
func Delete(c *memory.Cluster, resource schema.GroupVersionResource, namespace, name string) error {
	_, err := c.Do(UserActor, "kubectl", http.MethodDelete, PathOf(resource, namespace, name), "application/json",
		map[string]any{"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"})
	return err
}
