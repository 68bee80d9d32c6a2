// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

var scaleKind = schema.GroupKind{Group: "autoscaling", Kind: "Scale"}

// scaleOf returns the scale subresource of an object.
func scaleOf(k *kind, v *version) map[string]any {
	u := v.unstructured()
	metadata := map[string]any{
		"name": v.name, "namespace": v.namespace, "uid": string(v.uid), "resourceVersion": u.GetResourceVersion(),
		"creationTimestamp": u.Object["metadata"].(map[string]any)["creationTimestamp"],
	}
	replicas, _, _ := unstructured.NestedInt64(v.content, k.scale.Replicas...)
	current, _, _ := unstructured.NestedInt64(v.content, k.scale.StatusReplicas...)
	spec, status := map[string]any{}, map[string]any{"replicas": current}
	if replicas != 0 {
		spec["replicas"] = replicas
	}
	if selector := selectorText(k, v.content); selector != "" {
		status["selector"] = selector
	}
	return map[string]any{"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}
}

// selectorText returns the label selector of a scale in its text form.
func selectorText(k *kind, content map[string]any) string {
	if k.scale.Selector == nil {
		return ""
	}
	value, found, err := unstructured.NestedFieldNoCopy(content, k.scale.Selector...)
	if !found || err != nil {
		return ""
	}
	switch value := value.(type) {
	case string:
		return value
	case map[string]any:
		selector := &metav1.LabelSelector{}
		if runtime.DefaultUnstructuredConverter.FromUnstructured(value, selector) == nil {
			return metav1.FormatLabelSelector(selector)
		}
	}
	return ""
}

func getScale(k *kind, v *version) *Response {
	if failure := k.noReplicas(v.content); failure != nil {
		return failure.response()
	}
	return respond(http.StatusOK, encode(scaleOf(k, v)))
}

// noReplicas is the answer of the real server for a custom resource that lacks the field of its
// scale.
func (k *kind) noReplicas(content map[string]any) *failure {
	if k.definition == nil {
		return nil
	}
	if _, found, err := unstructured.NestedFieldNoCopy(content, k.scale.Replicas...); found && err == nil {
		return nil
	}
	return fail(apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", "."+strings.Join(k.scale.Replicas, "."))))
}

func (g *registry) updateScale(k *kind, r *Request) *Response {
	v := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	return g.setScale(k, r, v, r.Body, trackScale(k, r, v))
}

func (g *registry) patchScale(k *kind, r *Request, patchType types.PatchType) *Response {
	v := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	if patchType == types.StrategicMergePatchType {
		patchType = types.MergePatchType // a Scale has no lists
	}
	patched, failure := applyPatch(k, patchType, encode(scaleOf(k, v)), r.Body, false)
	if failure != nil {
		return failure.response()
	}
	return g.setScale(k, r, v, patched, trackScale(k, r, v))
}

// applyScale answers a server-side apply of the subresource.
func (g *registry) applyScale(k *kind, r *Request, manager string, applied *unstructured.Unstructured) *Response {
	v := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	if failure := k.noReplicas(v.content); failure != nil {
		return failure.response()
	}
	t, err := newScaleTracker(k, v)
	if err != nil {
		return fail(err).response()
	}
	merged, err := t.manager.Apply(t.live, applied, manager, r.isSet("force"))
	if err != nil {
		return fail(err).response()
	}
	scale, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return fail(apierrors.NewInternalError(fmt.Errorf("applying made a %T", merged))).response()
	}
	return g.setScale(k, r, v, encode(scale.Object), func(u *unstructured.Unstructured) error { return t.track(scale, u) })
}

// setScale writes the replicas of a scale into its object, in which track records who manages them.
func (g *registry) setScale(k *kind, r *Request, v *version, body []byte, track func(*unstructured.Unstructured) error) *Response {
	var scale struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     struct {
			Replicas int64 `json:"replicas"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(body, &scale); err != nil {
		return fail(apierrors.NewBadRequest(err.Error())).response()
	}
	if scale.Spec.Replicas < 0 && k.definition == nil {
		return fail(apierrors.NewInvalid(scaleKind, r.Name, fieldErrors("spec.replicas", scale.Spec.Replicas, "must be greater than or equal to 0"))).response()
	}
	if scale.Metadata.ResourceVersion != "" && scale.Metadata.ResourceVersion != v.unstructured().GetResourceVersion() {
		return conflict(k, r.Name).response()
	}
	u := v.unstructured().DeepCopy()
	if err := unstructured.SetNestedField(u.Object, scale.Spec.Replicas, k.scale.Replicas...); err != nil {
		return fail(apierrors.NewInternalError(fmt.Errorf("setting the replicas: %w", err))).response()
	}
	if err := track(u); err != nil {
		return fail(err).response()
	}
	g.stamp(v.unstructured(), u)
	main := *r
	main.Subresource = ""
	updated, failure := g.updateObject(&writeContext{request: &main, kind: k}, v, u, true)
	if failure != nil {
		return failure.response()
	}
	return respond(http.StatusOK, encode(scaleOf(k, updated)))
}

// scaleTracker records who manages the replicas of an object. As upstream, the entries are converted
// to those of a Scale, changed there, and converted back.
type scaleTracker struct {
	entries *managedfields.ScaleHandler
	manager *managedfields.FieldManager
	live    *unstructured.Unstructured // the Scale of the object, with its managed fields
}

func newScaleTracker(k *kind, v *version) (*scaleTracker, error) {
	path, err := fieldpath.MakePath(anys(k.scale.Replicas)...)
	if err != nil {
		return nil, fmt.Errorf("the path of the replicas: %w", err)
	}
	t := &scaleTracker{live: &unstructured.Unstructured{Object: deepCopy(scaleOf(k, v))}}
	t.entries = managedfields.NewScaleHandler(v.unstructured().GetManagedFields(), k.gvr.GroupVersion(), managedfields.ResourcePathMappings{k.gvr.GroupVersion().String(): path})
	entries, err := t.entries.ToSubresource()
	if err != nil {
		return nil, fmt.Errorf("the managed fields of the scale: %w", err)
	}
	t.live.SetManagedFields(entries)
	gvk := scaleKind.WithVersion("v1")
	t.manager, err = managedfields.NewDefaultFieldManager(managedfields.NewDeducedTypeConverter(), objects{k}, objects{k}, objects{k}, gvk, gvk.GroupVersion(), "scale", nil)
	if err != nil {
		return nil, fmt.Errorf("preparing the managed fields of a Scale: %w", err)
	}
	return t, nil
}

// track writes the managed fields of a Scale into its object.
func (t *scaleTracker) track(scale, u *unstructured.Unstructured) error {
	parent, err := t.entries.ToParent(scale.GetManagedFields())
	if err != nil {
		return fmt.Errorf("the managed fields of the scale: %w", err)
	}
	u.SetManagedFields(parent)
	return nil
}

// trackScale returns the function that records a change of the replicas that is no apply. It records
// nothing in an object that has no managed fields.
func trackScale(k *kind, r *Request, v *version) func(*unstructured.Unstructured) error {
	return func(u *unstructured.Unstructured) error {
		t, err := newScaleTracker(k, v)
		if err != nil || len(t.live.GetManagedFields()) == 0 {
			return err
		}
		changed := &unstructured.Unstructured{Object: deepCopy(scaleOf(k, &version{namespace: v.namespace, name: v.name, uid: v.uid, content: u.Object}))}
		tracked, ok := t.manager.UpdateNoErrors(t.live, changed, r.manager()).(*unstructured.Unstructured)
		if !ok {
			return nil
		}
		return t.track(tracked, u)
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}
