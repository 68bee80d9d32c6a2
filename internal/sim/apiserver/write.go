// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// writeContext is a write and what it needs.
type writeContext struct {
	request  *Request
	kind     *kind
	warnings []string

	// What is stored of a new object lacks defaults: the phase of a claim, whose status is cleared
	// after they are set, or the labels of a Job, which are those that its template is given then.
	// As upstream, its first update is written even if the client has changed nothing.
	lacksDefaults bool

	// defined establishes and serves a CustomResourceDefinition; nil for everything else.
	defined func()
}

// decode reads an object as the real server does: built-in kinds through their Go types, custom
// resources through their schema, both without unknown fields.
func (w *writeContext) decode(data []byte) (map[string]any, *failure) {
	in := inputsOf(w.kind, string(data))
	if known, ok := decodings.find(in); ok {
		d := known.(decoding)
		return cloneMap(d.content), w.strict(d.unknown)
	}
	content, unknown, failure := w.parse(data)
	if failure != nil {
		return nil, failure
	}
	decodings.add(in, decoding{cloneMap(content), unknown})
	return content, w.strict(unknown)
}

// decoding is what a document contains.
type decoding struct {
	content map[string]any
	unknown []string
}

var decodings = newMemo(512)

// parse does what decode does, without handling unknown fields. It depends on nothing but the kind
// and the document.
func (w *writeContext) parse(data []byte) (content map[string]any, unknown []string, _ *failure) {
	var err error
	if w.kind.definition == nil {
		if content, unknown, err = builtin.Normalize(w.kind.gvk, data); err != nil {
			return nil, nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		return content, unknown, w.checkKind(content)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil || content == nil {
		return nil, nil, fail(apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err)))
	}
	if failure := w.kind.checkCustomKind(content, data); failure != nil {
		return nil, nil, failure
	}
	if unknown, err = w.kind.definition.Normalize(content); err != nil {
		return nil, nil, fail(apierrors.NewBadRequest(err.Error()))
	}
	return content, unknown, nil
}

// checkKind checks that an object has the apiVersion and kind of the request's path, and sets them
// if they are not set.
func (w *writeContext) checkKind(content map[string]any) *failure {
	k := w.kind
	apiVersion, _ := content["apiVersion"].(string)
	kindName, _ := content["kind"].(string)
	if apiVersion == "" {
		content["apiVersion"], apiVersion = k.gvr.GroupVersion().String(), k.gvr.GroupVersion().String()
	}
	if kindName == "" {
		content["kind"], kindName = k.gvk.Kind, k.gvk.Kind
	}
	if apiVersion != k.gvr.GroupVersion().String() || kindName != k.gvk.Kind {
		return fail(apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: expected %s %s", kindName, apiVersion, k.gvk.Kind, k.gvr.GroupVersion(), k.gvk.Kind)))
	}
	return nil
}

// normalize brings content into the form in which objects of the kind are stored.
func (w *writeContext) normalize(content map[string]any) (map[string]any, *failure) {
	var unknown []string
	var err error
	if w.kind.definition != nil {
		unknown, err = w.kind.definition.Normalize(content)
	} else {
		content, unknown, err = builtin.Normalize(w.kind.gvk, encode(content))
	}
	if err != nil {
		return nil, fail(apierrors.NewBadRequest(err.Error()))
	}
	return content, w.strict(unknown)
}

// strict handles unknown fields as the query parameter fieldValidation demands: refuse, warn (the
// default) or ignore.
func (w *writeContext) strict(unknown []string) *failure {
	if len(unknown) == 0 {
		return nil
	}
	switch w.request.Query.Get("fieldValidation") {
	case "Strict":
		text := unknown[0]
		for _, u := range unknown[1:] {
			text += ", " + u
		}
		return fail(apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: strict decoding error: %s",
			w.kind.gvk.Kind, w.kind.gvk.Version, w.kind.gvk.Kind, text)))
	case "Ignore":
	default:
		w.warnings = append(w.warnings, unknown...)
	}
	return nil
}

// respond answers with an object and the collected warnings.
func (w *writeContext) respond(code int, v *version) *Response {
	response := respond(code, v.read(w.kind))
	for _, warning := range w.warnings {
		response.Header.Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	return response
}

// prepareCreate sets the defaults of a new object.
func (w *writeContext) prepareCreate(obj *unstructured.Unstructured) {
	if w.kind.definition != nil {
		if w.kind.status {
			delete(obj.Object, "status")
		}
		obj.SetGeneration(1)
		w.kind.definition.Default(obj.Object)
		return
	}
	unstructured.RemoveNestedField(obj.Object, "metadata", "generation")
	builtin.Default(w.kind.gvk, obj.Object)
	if spec, ok := obj.Object["spec"].(map[string]any); ok && w.kind.storage == podsStorage && spec["enableServiceLinks"] == nil {
		spec["enableServiceLinks"] = true
	}
}

// completeCreate does what the strategy of a built-in kind does upstream with a new object. It is
// called after the managed fields are recorded: what it sets has no manager.
func (w *writeContext) completeCreate(g *registry, obj *unstructured.Unstructured) {
	if w.kind.definition == nil {
		builtin.PrepareCreate(w.kind.gvk, obj.Object, g.allocate)
		w.nameRequester(obj)
	}
}

// setDefaults sets the defaults of a changed object, as upstream when its new state is read.
func (w *writeContext) setDefaults(obj *unstructured.Unstructured) {
	if w.kind.definition != nil {
		w.kind.definition.Default(obj.Object)
		return
	}
	builtin.Default(w.kind.gvk, obj.Object)
}

// prepareUpdate does what the kind's strategy does upstream before an object is updated.
func (w *writeContext) prepareUpdate(g *registry, obj, before *unstructured.Unstructured) {
	if w.kind.definition == nil {
		builtin.PrepareUpdate(w.kind.gvk, obj.Object, before.Object, w.request.Subresource)
		w.stampConditions(g, obj, before)
		g.allocateMissing(w.kind, obj)
		return
	}
	switch {
	case w.request.Subresource == "status":
		status, ok := obj.Object["status"]
		managed := obj.GetManagedFields()
		resourceVersion := obj.GetResourceVersion()
		obj.Object = deepCopy(before.Object)
		if ok {
			obj.Object["status"] = status
		} else {
			delete(obj.Object, "status")
		}
		obj.SetResourceVersion(resourceVersion)
		obj.SetManagedFields(managed)
	default:
		if w.kind.status {
			if status, ok := before.Object["status"]; ok {
				obj.Object["status"] = status
			} else {
				delete(obj.Object, "status")
			}
		}
		if w.changesGeneration(obj.Object, before.Object) {
			obj.SetGeneration(before.GetGeneration() + 1)
		}
	}
}

// changesGeneration reports whether two states of a custom resource differ in anything but metadata
// and, if it is a subresource, status.
func (w *writeContext) changesGeneration(a, b map[string]any) bool {
	main := func(content map[string]any) map[string]any {
		content = shallow(content)
		delete(content, "metadata")
		if w.kind.status {
			delete(content, "status")
		}
		return content
	}
	return !reflect.DeepEqual(main(a), main(b))
}

// validate checks a new state of an object, against the old one if there is one.
func (w *writeContext) validate(obj, before *unstructured.Unstructured) field.ErrorList {
	in := inputsOf(w.kind, w.request.Subresource, validated(obj), validated(before))
	if _, valid := validations.find(in); valid {
		return nil
	}
	in = in.clone() // defaults may be set while checking
	if errs := w.check(obj, before); len(errs) > 0 {
		return errs
	}
	validations.add(in, nil)
	return nil
}

// validations holds the states that are valid.
var validations = newMemo(512)

// validated returns what of an object is checked: everything but its managed fields and, if it has
// one, which resource version it has.
func validated(obj *unstructured.Unstructured) any {
	switch {
	case obj == nil:
		return nil
	case obj.GetResourceVersion() == "":
		return withoutMetadata(obj.Object, "managedFields")
	}
	content := withoutMetadata(obj.Object, "managedFields")
	metadata(content)["resourceVersion"] = "some"
	return content
}

// check does what validate does. It depends on nothing but the kind, the subresource and the states.
func (w *writeContext) check(obj, before *unstructured.Unstructured) field.ErrorList {
	errs := validateMetadata(w.kind, obj, before, w.request.Subresource)
	switch {
	case w.kind.definition != nil && before != nil:
		errs = append(errs, w.kind.definition.ValidateUpdate(obj.Object, before.Object, w.request.Subresource, errs)...)
	case w.kind.definition != nil:
		errs = append(errs, w.kind.definition.Validate(obj.Object, errs)...)
	case before != nil:
		errs = append(errs, builtin.ValidateUpdate(w.kind.gvk, obj.Object, before.Object, w.request.Subresource)...)
	default:
		more := builtin.Validate(w.kind.gvk, obj.Object)
		if len(more) > 0 && builtin.ValidatesMetadataLast(w.kind.gvk) {
			return more
		}
		errs = append(errs, more...)
	}
	return errs
}

func deepCopy(m map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: m}).DeepCopy().Object
}
