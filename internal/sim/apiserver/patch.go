// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

func (g *registry) patch(k *kind, r *Request) *Response {
	patchType, _, _ := strings.Cut(r.ContentType, ";")
	w := &writeContext{request: r, kind: k}
	if types.PatchType(patchType) == types.ApplyYAMLPatchType {
		return g.apply(w)
	}
	if r.Subresource == "scale" {
		return g.patchScale(k, r, types.PatchType(patchType))
	}
	if k.definition != nil && types.PatchType(patchType) == types.StrategicMergePatchType {
		_, failure := applyPatch(k, types.StrategicMergePatchType, nil, nil, false)
		return failure.response()
	}
	old := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if old == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	if response := g.repeated(w, old); response != nil {
		return response
	}
	patched, failure := applyPatch(k, types.PatchType(patchType), old.encode(k.gvk), r.Body, r.Query.Get("fieldValidation") == "Ignore")
	if failure != nil {
		return failure.response()
	}
	content, failure := w.decode(patched)
	if failure != nil {
		if _, text, ok := strings.Cut(failure.status.Message, "strict decoding error: "); ok {
			failure = fail(apierrors.NewInvalid(schema.GroupKind{}, "", fieldErrors("patch", string(patched), "strict decoding error: "+text)))
		}
		return failure.response()
	}
	obj := &unstructured.Unstructured{Object: content}
	if failure := place(r, obj); failure != nil {
		return failure.response()
	}
	v, failure := g.updateObject(w, old, obj, false)
	if failure != nil {
		return failure.response()
	}
	return w.changed(old, v)
}

// applyPatch returns the document that a patch results in. Upstream refuses a merge patch that is
// not an object with one of two errors; lenient, which stands for fieldValidation=Ignore, selects
// the second.
func applyPatch(k *kind, patchType types.PatchType, document, patch []byte, lenient bool) ([]byte, *failure) {
	switch patchType {
	case types.JSONPatchType:
		operations, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		patched, err := operations.Apply(document)
		if err != nil {
			return nil, fail(apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", unknownResource, "", err.Error(), 0, false))
		}
		return patched, nil
	case types.MergePatchType:
		var check map[string]any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(patch, &check); err != nil && lenient {
			var meta struct {
				APIVersion string `json:"apiVersion,omitempty"`
				Kind       string `json:"kind,omitempty"`
			}
			err = json.Unmarshal(patch, &meta)
			return nil, fail(apierrors.NewInvalid(schema.GroupKind{}, "", fieldErrors("patch", string(patch), fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))))
		} else if err != nil {
			return nil, fail(apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err)))
		}
		return mergePatch(document, patch)
	case types.StrategicMergePatchType:
		if k.definition != nil {
			return nil, unsupportedPatch("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
		}
		patched, err := strategicpatch.StrategicMergePatch(document, patch, builtin.New(k.gvk))
		if err != nil {
			return nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		return patched, nil
	}
	return nil, unsupportedPatch("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml")
}

// merges are the results of merge patches.
var merges = newMemo(512)

// mergePatch returns what a merge patch makes of a document. The result must not be modified.
func mergePatch(document, patch []byte) ([]byte, *failure) {
	in := inputsOf(string(document), string(patch))
	if known, ok := merges.find(in); ok {
		return known.([]byte), nil
	}
	patched, err := jsonpatch.MergePatch(document, patch)
	if err != nil {
		return nil, fail(apierrors.NewBadRequest(err.Error()))
	}
	merges.add(in, patched)
	return patched, nil
}

func unsupportedPatch(supported ...string) *failure {
	f := fail(apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", unknownResource, "", "", 0, false))
	f.status.Message = "the body of the request was in an unknown format - accepted media types include: " + strings.Join(supported, ", ")
	f.status.Reason = "UnsupportedMediaType"
	f.status.Details = nil
	return f
}

// apply answers a server-side apply.
func (g *registry) apply(w *writeContext) *Response {
	k, r := w.kind, w.request
	manager := r.Query.Get("fieldManager")
	if manager == "" {
		return fail(apierrors.NewInvalid(patchOptionsKind, "", fieldRequired("fieldManager", "is required for apply patch"))).response()
	}
	data, err := yaml.YAMLToJSON(r.Body)
	if err != nil {
		return fail(apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))).response()
	}
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil || content == nil {
		return fail(apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))).response()
	}
	applied := &unstructured.Unstructured{Object: content}
	if r.Subresource == "scale" {
		return g.applyScale(k, r, manager, applied)
	}
	old := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if response := g.repeated(w, old); response != nil {
		return response
	}
	if old == nil && (r.Subresource != "" || applied.GetUID() != "") {
		if applied.GetUID() != "" {
			return fail(apierrors.NewConflict(k.gvr.GroupResource(), r.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", applied.GetUID()))).response()
		}
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	merged, failure := w.trackApply(g, old, applied, manager, r.isSet("force"))
	if failure != nil {
		return failure.response()
	}
	normal, failure := w.normalize(merged.Object)
	if failure != nil {
		return failure.response()
	}
	obj := &unstructured.Unstructured{Object: normal}
	if failure := place(r, obj); failure != nil {
		return failure.response()
	}
	if old == nil {
		obj.SetResourceVersion("") // there is no version to compare with
		v, failure := g.createObject(w, normal, applied)
		if failure != nil {
			return failure.response()
		}
		return w.respond(http.StatusCreated, v)
	}
	v, failure := g.updateObject(w, old, obj, true)
	if failure != nil {
		return failure.response()
	}
	return w.changed(old, v)
}
