// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	internalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	// maxBody is how large the body of a request may be, as with the default of kube-apiserver.
	maxBody = 3 << 20

	// maxStored is how large an object may be in etcd, with its default settings.
	maxStored = 3 << 19
)

// checkRequest refuses a request whose body, verb, header Accept or query the real server refuses.
func (s *Server) checkRequest(k *kind, r *Request) *failure {
	if r.Verb == "unknown" || r.Subresource == "" && !slices.Contains(k.verbs, r.Verb) {
		return methodNotAllowed()
	}
	if k.definition != nil && k.definition.Unconvertible {
		return notImplemented(fmt.Sprintf("the conversion webhook of %s: version %s has another schema than the stored version. Use the stored version, or test against a real control plane",
			k.gvr.GroupResource(), k.gvr.Version))
	}
	if failure := k.checkAccept(r); failure != nil {
		return failure
	}
	if len(r.Body) > maxBody {
		return fail(apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", maxBody)))
	}
	if r.unreadable != nil {
		return r.unreadable
	}
	if len(r.Query) == 0 && r.Verb != "patch" {
		return nil
	}
	kind, errs, err := checkOptions(r)
	switch {
	case err != nil:
		return fail(apierrors.NewBadRequest(err.Error()))
	case len(errs) > 0:
		return fail(apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", errs))
	}
	return nil
}

// checkOptions checks the options that a request has in its query, with the functions of the real
// server. Parameters that it does not know have no effect there either.
func checkOptions(r *Request) (kind string, errs field.ErrorList, err error) {
	switch r.Verb {
	case "create":
		o := &metav1.CreateOptions{}
		err = metav1.Convert_url_Values_To_v1_CreateOptions(&r.Query, o, nil)
		return "CreateOptions", metav1validation.ValidateCreateOptions(o), err
	case "update":
		o := &metav1.UpdateOptions{}
		err = metav1.Convert_url_Values_To_v1_UpdateOptions(&r.Query, o, nil)
		return "UpdateOptions", metav1validation.ValidateUpdateOptions(o), err
	case "patch":
		o := &metav1.PatchOptions{}
		err = metav1.Convert_url_Values_To_v1_PatchOptions(&r.Query, o, nil)
		contentType, _, _ := strings.Cut(r.ContentType, ";")
		return "PatchOptions", metav1validation.ValidatePatchOptions(o, types.PatchType(contentType)), err
	case "list", "watch", "deletecollection":
		o := &metav1.ListOptions{}
		if err := metav1.Convert_url_Values_To_v1_ListOptions(&r.Query, o, nil); err != nil {
			return "", nil, err
		}
		return "ListOptions", internalvalidation.ValidateListOptions(&internalversion.ListOptions{
			Watch: r.Verb == "watch", ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.ResourceVersionMatch,
			Continue: o.Continue, SendInitialEvents: o.SendInitialEvents,
		}, true), nil
	}
	return "", nil, nil
}

// deleteOptions returns the options of a deletion. As upstream, those in the query count only if
// there is no body.
func deleteOptions(r *Request) (*metav1.DeleteOptions, *failure) {
	options := &metav1.DeleteOptions{}
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, options); err != nil {
			return nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		if options.Kind != "" && options.Kind != "DeleteOptions" {
			return nil, fail(apierrors.NewBadRequest(fmt.Sprintf("%s in the body of a deletion: want DeleteOptions", options.Kind)))
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&r.Query, options, nil); err != nil {
		return nil, fail(apierrors.NewBadRequest(err.Error()))
	}
	r.DryRun = len(options.DryRun) > 0
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs))
	}
	return options, nil
}

// checkCustomKind checks that a custom resource has the apiVersion and kind of the request's path.
// Unlike those of built-in kinds, custom resources must have both.
func (k *kind) checkCustomKind(content map[string]any, data []byte) *failure {
	apiVersion, _ := content["apiVersion"].(string)
	kindName, _ := content["kind"].(string)
	switch want := k.gvr.GroupVersion().String(); {
	case kindName == "":
		summary := string(data)
		if len(summary) > 30 {
			summary = summary[:30] + " ..."
		}
		return fail(apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
			k.gvk.Kind, runtime.NewMissingKindErr(string(data)), summary)))
	case apiVersion != want:
		return fail(apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", apiVersion, want)))
	case kindName != k.gvk.Kind:
		name, _ := metadata(content)["name"].(string)
		return fail(apierrors.NewInvalid(k.gvk.GroupVersion().WithKind(kindName).GroupKind(), name, fieldErrors("kind", kindName, "must be "+k.gvk.Kind)))
	}
	return nil
}

// checkSize refuses an object that is too large for etcd. It measures only objects that may be: the
// body of the request, and what a patch adds to, are nearly all of an object.
func (g *registry) checkSize(w *writeContext, old *version, obj *unstructured.Unstructured) *failure {
	size := len(w.request.Body)
	if old != nil && w.request.Verb == "patch" {
		size += len(old.encode(w.kind.gvk))
	}
	if size < maxStored/2 {
		return nil
	}
	data := encode(obj.Object)
	if info, ok := runtime.SerializerInfoForMediaType(codecs().SupportedMediaTypes(), runtime.ContentTypeProtobuf); ok && w.kind.definition == nil {
		// Built-in kinds are stored as protobuf.
		if smaller, err := (accepted{info: info}).encode(data, false); err == nil {
			data = smaller
		}
	}
	if len(data) <= maxStored {
		return nil
	}
	return &failure{metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}}
}

// maxNameTries is how often the real server generates a name until it finds one that is free.
const maxNameTries = 8

// generateName gives an object a name that no other one has, if it can find one.
func (g *registry) generateName(k *kind, obj *unstructured.Unstructured) {
	for range maxNameTries {
		obj.SetName(g.minter.generateName(k, obj.GetNamespace(), obj.GetGenerateName()))
		if g.store.table(k).objects[key{obj.GetNamespace(), obj.GetName()}] == nil {
			return
		}
	}
}
