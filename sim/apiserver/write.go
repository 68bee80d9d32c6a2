// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/ctrlkit/ctrlkit/sim/apiserver/internal/builtin"
)

// writeContext is one write.
type writeContext struct {
	request  *Request
	kind     *kind
	warnings []string
}

// decode reads an object of a kind as the real server does: with its types, without the fields that it does not know.
func (w *writeContext) decode(data []byte) (map[string]any, *failure) {
	if w.kind.definition == nil {
		content, unknown, err := builtin.Normalise(w.kind.gvk, data)
		if err != nil {
			return nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		if failure := w.checkKind(content); failure != nil {
			return nil, failure
		}
		return content, w.strict(unknown)
	}
	var content map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &content); err != nil || content == nil {
		return nil, fail(apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err)))
	}
	if failure := w.checkKind(content); failure != nil {
		return nil, failure
	}
	return w.normalise(content)
}

// checkKind demands that an object is of the kind that the path says, or says nothing of it.
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

// normalise brings content into the form in which the kind is stored.
func (w *writeContext) normalise(content map[string]any) (map[string]any, *failure) {
	var unknown []string
	var err error
	if w.kind.definition != nil {
		unknown, err = w.kind.definition.Normalise(content)
	} else {
		content, unknown, err = builtin.Normalise(w.kind.gvk, encode(content))
	}
	if err != nil {
		return nil, fail(apierrors.NewBadRequest(err.Error()))
	}
	return content, w.strict(unknown)
}

// strict deals with unknown fields as the request wants: refuse, warn or ignore.
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

// respond answers with an object, and with the warnings.
func (w *writeContext) respond(code int, v *version) *Response {
	response := respond(code, v.encode(w.kind.gvk))
	for _, warning := range w.warnings {
		response.Header.Add("Warning", fmt.Sprintf("299 - %q", warning))
	}
	return response
}

func (s *Server) create(k *kind, r *Request) *Response {
	w := &writeContext{request: r, kind: k}
	if r.Name != "" {
		return fail(apierrors.NewMethodNotSupported(k.gvr.GroupResource(), "create")).response()
	}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	v, failure := s.createObject(w, content, nil)
	if failure != nil {
		return failure.response()
	}
	return w.respond(http.StatusCreated, v)
}

// createObject stores a new object. applied, if not nil, is the applied configuration that it comes from.
func (s *Server) createObject(w *writeContext, content map[string]any, applied *unstructured.Unstructured) (*version, *failure) {
	k, r := w.kind, w.request
	obj := &unstructured.Unstructured{Object: content}
	if failure := s.place(k, r, obj); failure != nil {
		return nil, failure
	}
	if failure := s.checkNamespace(k, r, obj); failure != nil {
		return nil, failure
	}
	obj.SetDeletionTimestamp(nil)
	unstructured.RemoveNestedField(content, "metadata", "deletionGracePeriodSeconds")
	unstructured.RemoveNestedField(content, "metadata", "selfLink")
	obj.SetCreationTimestamp(metav1.NewTime(s.now()))
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.generateName(k, obj.GetNamespace(), obj.GetGenerateName()))
	}
	obj.SetUID(s.newUID(k, obj.GetNamespace(), obj.GetName()))
	w.prepareCreate(s, obj)
	if failure := w.admit(s, obj, nil); failure != nil {
		return nil, failure
	}
	if applied == nil {
		if failure := w.trackUpdate(s, nil, obj); failure != nil {
			return nil, failure
		}
	}
	if errs := w.validate(obj, nil); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs))
	}
	if k.definition == nil {
		builtin.WithoutEmptyLists(obj.Object)
	}
	if obj.GetResourceVersion() != "" && !r.DryRun {
		// The real server has it from its storage, as an error without a reason.
		return nil, &failure{metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created"}}
	}
	if there := s.table(k).objects[key{obj.GetNamespace(), obj.GetName()}]; there != nil {
		err := apierrors.NewAlreadyExists(k.gvr.GroupResource(), obj.GetName())
		if obj.GetGenerateName() != "" {
			err = apierrors.NewGenerateNameConflict(k.gvr.GroupResource(), obj.GetName(), 1)
		}
		if there.unstructured().GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, fail(err)
	}
	if r.DryRun {
		return dry(obj), nil
	}
	return s.put(w, nil, obj.Object), nil
}

// dry is a version that is not stored.
func dry(obj *unstructured.Unstructured) *version {
	return &version{namespace: obj.GetNamespace(), name: obj.GetName(), uid: obj.GetUID(), content: obj.Object}
}

// place checks namespace and name of an object against the request.
func (s *Server) place(k *kind, r *Request, obj *unstructured.Unstructured) *failure {
	switch {
	case k.namespaced && obj.GetNamespace() == "":
		obj.SetNamespace(r.Namespace)
	case k.namespaced && obj.GetNamespace() != r.Namespace:
		return fail(apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request"))
	case !k.namespaced && obj.GetNamespace() != "":
		return fail(apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request"))
	}
	switch {
	case r.Name == "":
	case obj.GetName() == "":
		obj.SetName(r.Name)
	case obj.GetName() != r.Name:
		return fail(apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), r.Name)))
	}
	return nil
}

// checkNamespace demands that the namespace is there, and not going away.
func (s *Server) checkNamespace(k *kind, r *Request, obj *unstructured.Unstructured) *failure {
	if !k.namespaced {
		return nil
	}
	v := s.tables[namespacesStorage].objects[key{name: obj.GetNamespace()}]
	if v == nil {
		return fail(apierrors.NewNotFound(namespacesStorage, obj.GetNamespace()))
	}
	if v.unstructured().GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(k.gvr.GroupResource(), obj.GetName(), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", obj.GetNamespace()))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", obj.GetNamespace()), Field: "metadata.namespace",
	})
	return fail(err)
}

func (s *Server) update(k *kind, r *Request) *Response {
	if r.Subresource == "scale" {
		return s.updateScale(k, r)
	}
	w := &writeContext{request: r, kind: k}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	obj := &unstructured.Unstructured{Object: content}
	if failure := s.place(k, r, obj); failure != nil {
		return failure.response()
	}
	old := s.table(k).objects[key{r.Namespace, r.Name}]
	if old == nil {
		if k.definition == nil && builtin.CreatesOnUpdate(k.gvk) && r.Subresource == "" {
			if uid := obj.GetUID(); uid != "" {
				return k.wrongUID(r, uid, "").response()
			}
			if !r.DryRun {
				obj.SetResourceVersion("")
			}
			v, failure := s.createObject(w, content, nil)
			if failure != nil {
				return failure.response()
			}
			return w.respond(http.StatusCreated, v)
		}
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	v, failure := s.updateObject(w, old, obj, false)
	if failure != nil {
		return failure.response()
	}
	return w.respond(http.StatusOK, v)
}

// updateObject stores a new state of an object. tracked says that its managed fields are right already.
func (s *Server) updateObject(w *writeContext, old *version, obj *unstructured.Unstructured, tracked bool) (*version, *failure) {
	k, r := w.kind, w.request
	before := old.unstructured()
	if uid := obj.GetUID(); uid != "" && uid != old.uid {
		return nil, k.wrongUID(r, uid, old.uid)
	}
	switch {
	case obj.GetResourceVersion() == "" && k.unconditional():
		obj.SetResourceVersion(before.GetResourceVersion())
	case obj.GetResourceVersion() == "" && !k.unconditional():
		errs := field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
		errs[0].BadValue = uint64(0)
		return nil, fail(apierrors.NewInvalid(schema.GroupKind{Group: k.gvr.Group, Kind: k.gvr.Resource}, r.Name, errs))
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != before.GetResourceVersion():
		return nil, conflict(k, r.Name)
	}
	keepMetadata(obj, before)
	if m := metadata(obj.Object); !tracked && m["managedFields"] == nil && metadata(before.Object)["managedFields"] != nil {
		m["managedFields"] = metadata(before.Object)["managedFields"]
	}
	w.prepareUpdate(s, obj, before)
	if failure := w.admit(s, obj, before); failure != nil {
		return nil, failure
	}
	if !tracked {
		if failure := w.trackUpdate(s, before, obj); failure != nil {
			return nil, failure
		}
	}
	if errs := w.validate(obj, before); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs))
	}
	if k.definition == nil {
		builtin.WithoutEmptyLists(obj.Object)
	}
	// Nothing changed, or nothing but the times at which fields were managed: nothing is written.
	obj.SetResourceVersion(before.GetResourceVersion())
	if same(obj, before) {
		return old, nil
	}
	if r.DryRun {
		return dry(obj), nil
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && s.goesWithoutFinalizers(k, obj) {
		// Watches see the object as it was before, the answer is what it has become.
		s.removed(k, s.remove(w, old))
		return dry(obj), nil
	}
	return s.put(w, old, obj.Object), nil
}

func conflict(k *kind, name string) *failure {
	return fail(apierrors.NewConflict(k.gvr.GroupResource(), name,
		fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again")))
}

// unconditional reports whether objects may be updated without saying which version one has seen.
func (k *kind) unconditional() bool {
	return k.definition == nil && builtin.UnconditionalUpdate(k.gvk)
}

// wrongUID is what the real server says when the object is not the one that was meant.
func (k *kind) wrongUID(r *Request, want, got types.UID) *failure {
	return fail(apierrors.NewConflict(k.gvr.GroupResource(), r.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		k.registryKey(r), want, got)))
}

// registryKey is where the real server stores an object, which some of its errors tell.
func (k *kind) registryKey(r *Request) string {
	key := "/registry/"
	if r.DryRun {
		key = "/"
	}
	if k.definition != nil {
		key += k.gvr.Group + "/"
	}
	key += k.gvr.Resource
	if r.Namespace != "" {
		key += "/" + r.Namespace
	}
	return key + "/" + r.Name
}

// keepMetadata takes over what an update can't change.
func keepMetadata(obj, before *unstructured.Unstructured) {
	m, old := metadata(obj.Object), metadata(before.Object)
	for _, name := range []string{"uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generateName", "generation", "selfLink"} {
		if v, ok := old[name]; ok {
			m[name] = v
		} else {
			delete(m, name)
		}
	}
}

// same reports whether two states are equal but for the times of their managed fields.
func same(a, b *unstructured.Unstructured) bool {
	if !reflect.DeepEqual(withoutManagedFields(a.Object), withoutManagedFields(b.Object)) {
		return false
	}
	x, y := a.GetManagedFields(), b.GetManagedFields()
	for i := range x {
		x[i].Time = nil
	}
	for i := range y {
		y[i].Time = nil
	}
	return reflect.DeepEqual(x, y)
}

func withoutManagedFields(content map[string]any) map[string]any {
	m, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	content, m = shallow(content), shallow(m)
	delete(m, "managedFields")
	content["metadata"] = m
	return content
}

// prepareCreate does what the strategy of the kind does with new objects.
func (w *writeContext) prepareCreate(s *Server, obj *unstructured.Unstructured) {
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
	builtin.PrepareCreate(w.kind.gvk, obj.Object, s.allocate)
}

// prepareUpdate does what the strategy of the kind does with changed objects.
func (w *writeContext) prepareUpdate(s *Server, obj, before *unstructured.Unstructured) {
	if w.kind.definition == nil {
		builtin.Default(w.kind.gvk, obj.Object)
		builtin.PrepareUpdate(w.kind.gvk, obj.Object, before.Object, w.request.Subresource)
		return
	}
	w.kind.definition.Default(obj.Object)
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

// changesGeneration reports whether the main part of a custom resource differs.
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
	errs := validateMetadata(w.kind, obj, before, w.request.Subresource)
	switch {
	case w.kind.definition != nil && before != nil:
		errs = append(errs, w.kind.definition.ValidateUpdate(obj.Object, before.Object, w.request.Subresource, errs)...)
	case w.kind.definition != nil:
		errs = append(errs, w.kind.definition.Validate(obj.Object, errs)...)
	case before != nil:
		errs = append(errs, builtin.ValidateUpdate(w.kind.gvk, obj.Object, before.Object, w.request.Subresource)...)
	default:
		errs = append(errs, builtin.Validate(w.kind.gvk, obj.Object)...)
	}
	return errs
}

func deepCopy(m map[string]any) map[string]any {
	return (&unstructured.Unstructured{Object: m}).DeepCopy().Object
}

// Deletion.

func (s *Server) delete(k *kind, r *Request) *Response {
	options, failure := deleteOptions(r)
	if failure != nil {
		return failure.response()
	}
	v := s.table(k).objects[key{r.Namespace, r.Name}]
	if v == nil {
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	w := &writeContext{request: r, kind: k}
	return s.deleteObject(w, v, options)
}

func deleteOptions(r *Request) (*metav1.DeleteOptions, *failure) {
	options := &metav1.DeleteOptions{}
	if len(r.Body) > 0 {
		if err := json.Unmarshal(r.Body, options); err != nil {
			return nil, fail(apierrors.NewBadRequest(err.Error()))
		}
		r.DryRun = false // what the query says counts only without a body
		if options.Kind != "" && options.Kind != "DeleteOptions" {
			return nil, fail(apierrors.NewBadRequest(fmt.Sprintf("%s in the body of a deletion: it has to be DeleteOptions", options.Kind)))
		}
	}
	if text := r.Query.Get("propagationPolicy"); text != "" && len(r.Body) == 0 {
		policy := metav1.DeletionPropagation(text)
		options.PropagationPolicy = &policy
	}
	if text := r.Query.Get("gracePeriodSeconds"); text != "" && len(r.Body) == 0 {
		var seconds int64
		if _, err := fmt.Sscan(text, &seconds); err != nil {
			return nil, fail(apierrors.NewBadRequest("gracePeriodSeconds: " + err.Error()))
		}
		options.GracePeriodSeconds = &seconds
	}
	if len(options.DryRun) > 0 {
		r.DryRun = true
	}
	if errs := validateDeleteOptions(options); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs))
	}
	return options, nil
}

// deleteObject deletes an object, or says that it is to be deleted and leaves the rest to those whose finalizers it has.
func (s *Server) deleteObject(w *writeContext, v *version, options *metav1.DeleteOptions) *Response {
	k, r := w.kind, w.request
	if failure := checkPreconditions(k, v, options.Preconditions); failure != nil {
		return failure.response()
	}
	finalizers, changed := finalizersFor(k, v, options)
	grace := s.gracePeriod(k, v, options)
	obj := v.unstructured()
	marked := obj.GetDeletionTimestamp() != nil
	if len(finalizers) == 0 && grace == 0 && !isFullNamespace(k, obj) {
		if !r.DryRun {
			if changed {
				u := obj.DeepCopy()
				u.SetFinalizers(nil)
				v = s.put(w, v, u.Object)
			}
			v = s.remove(w, v)
			s.removed(k, v)
		}
		if k.definition == nil && builtin.ReturnsDeleted(k.gvk) {
			return w.respond(http.StatusOK, v)
		}
		return deleted(k, v)
	}
	sooner := marked && obj.GetDeletionGracePeriodSeconds() != nil && grace < *obj.GetDeletionGracePeriodSeconds()
	if marked && !changed && !sooner {
		return w.respond(http.StatusOK, v)
	}
	u := obj.DeepCopy()
	if !marked {
		when := metav1.NewTime(s.now().Add(time.Duration(grace) * time.Second))
		u.SetDeletionTimestamp(&when)
		u.SetDeletionGracePeriodSeconds(&grace)
		if u.GetGeneration() > 0 {
			u.SetGeneration(u.GetGeneration() + 1)
		}
	} else if sooner {
		when := metav1.NewTime(s.now().Add(time.Duration(grace) * time.Second))
		u.SetDeletionTimestamp(&when)
		u.SetDeletionGracePeriodSeconds(&grace)
	}
	u.SetFinalizers(finalizers)
	if k.gvr.Resource == "namespaces" && k.gvr.Group == "" {
		builtin.Terminate(u.Object)
	}
	if r.DryRun {
		return w.respond(http.StatusOK, dry(u))
	}
	return w.respond(http.StatusOK, s.put(w, v, u.Object))
}

// isFullNamespace reports whether an object is a namespace that has not been emptied.
func isFullNamespace(k *kind, obj *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(obj.Object, "spec", "finalizers")
	return k.storage == namespacesStorage && len(finalizers) > 0
}

func checkPreconditions(k *kind, v *version, p *metav1.Preconditions) *failure {
	refuse := func(format, precondition, record, what string) *failure {
		return fail(apierrors.NewConflict(schema.GroupResource{Group: k.gvk.Group, Resource: k.gvk.Kind}, v.name,
			fmt.Errorf("the %s in the precondition (%s) does not match the %s in record (%s). The object might have been %s", format, precondition, format, record, what)))
	}
	version := v.unstructured().GetResourceVersion()
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != v.uid:
		return refuse("UID", string(*p.UID), string(v.uid), "deleted and then recreated")
	case p.ResourceVersion != nil && *p.ResourceVersion != version:
		return refuse("ResourceVersion", *p.ResourceVersion, version, "modified")
	}
	return nil
}

// deleted is the answer to a deletion that is done.
func deleted(k *kind, v *version) *Response {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: v.name, Group: k.gvr.Group, Kind: k.gvr.Resource, UID: v.uid},
	}
	body, err := json.Marshal(status)
	if err != nil {
		panic(err) // plain fields
	}
	return respond(http.StatusOK, append(body, '\n'))
}

func (s *Server) deleteCollection(k *kind, r *Request) *Response {
	options, failure := deleteOptions(r)
	if failure != nil {
		return failure.response()
	}
	sel, failure := newSelection(k, r)
	if failure != nil {
		return failure.response()
	}
	var items []*version
	for _, v := range s.table(k).sorted(r.Namespace) {
		if sel.matches(k, v) {
			items = append(items, v)
		}
	}
	items = append([]*version(nil), items...)
	for _, v := range items {
		single := *r
		single.Name, single.Namespace = v.name, v.namespace
		s.deleteObject(&writeContext{request: &single, kind: k}, v, options)
	}
	return respond(http.StatusOK, encodeList(k, items, s.revision, "", 0))
}
