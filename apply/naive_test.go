// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// A naive step keeps the objects of a Shop as operators do that make all mistakes at once: those
// for which package apply has a test.
type naive struct {
	build func(ctx context.Context, c client.Client, shop *Shop) []client.Object
	kinds []schema.GroupVersionKind // where it looks for what it does not want any more
}

func (n *naive) step() step.Step[*Shop] { return step.Step[*Shop]{Name: "Naive", Do: n.do} }

func (n *naive) do(ctx context.Context, req *step.Request[*Shop]) error {
	label := map[string]string{"naive": req.Object.Name + req.Object.Namespace} // without a separator
	wanted := map[string]bool{}
	for _, obj := range n.build(ctx, req.Client, req.Object) {
		if obj.GetNamespace() == "" {
			obj.SetNamespace(req.Object.Namespace)
		}
		wanted[obj.GetObjectKind().GroupVersionKind().Kind+obj.GetNamespace()+"/"+obj.GetName()] = true
		if err := n.ensure(ctx, req, obj, label); err != nil {
			return err
		}
	}
	for _, gvk := range n.kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		if err := req.Client.List(ctx, list, client.MatchingLabels(label)); err != nil {
			return err
		}
		for i := range list.Items {
			if item := &list.Items[i]; !wanted[gvk.Kind+item.GetNamespace()+"/"+item.GetName()] {
				if err := req.Client.Delete(ctx, item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (n *naive) ensure(ctx context.Context, req *step.Request[*Shop], obj client.Object, label map[string]string) error {
	gvk := obj.GetObjectKind().GroupVersionKind()
	obj.SetLabels(label)
	obj.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(req.Object, shopVersion.WithKind("Shop"))})
	data, err := json.Marshal(obj) // with its zero values
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, &u.Object); err != nil {
		return err
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	current := &unstructured.Unstructured{}
	current.SetGroupVersionKind(gvk)
	if err := req.Client.Get(ctx, client.ObjectKeyFromObject(obj), current); client.IgnoreNotFound(err) != nil {
		return err
	} else if err == nil && isSubset(u.Object, current.Object) {
		return nil
	}
	if owner := metav1.GetControllerOf(current); owner != nil && owner.UID != req.Object.UID {
		current.SetOwnerReferences(obj.GetOwnerReferences())
		if err := req.Client.Update(ctx, current); err != nil {
			return err
		}
	}
	return req.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("naive-"+label["naive"]), client.ForceOwnership)
}

// isSubset compares what is wanted with what there is, value by value.
func isSubset(wanted, there any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := there.(map[string]any)
		for key, value := range wanted {
			if !ok || !isSubset(value, fields[key]) {
				return false
			}
		}
		return ok
	case []any:
		items, ok := there.([]any)
		if !ok || len(items) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !isSubset(wanted[i], items[i]) {
				return false
			}
		}
		return true
	case float64:
		n, ok := there.(int64)
		return ok && float64(n) == wanted
	}
	return reflect.DeepEqual(wanted, there)
}

// kinded sets the kind of a typed object, which Go's types do not know.
func kinded(obj client.Object) client.Object {
	gvks, _, err := scheme.ObjectKinds(obj)
	if err != nil {
		panic(err) // the scheme has all kinds of the tests
	}
	obj.GetObjectKind().SetGroupVersionKind(gvks[0])
	return obj
}
