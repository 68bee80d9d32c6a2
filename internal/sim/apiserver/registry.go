// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
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
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// registry creates, updates, patches and deletes objects. It imitates the generic registry of the
// real server (k8s.io/apiserver/pkg/registry/generic/registry) and the strategies of its kinds.
type registry struct {
	store   *store
	catalog *catalog
	minter  *minter
	now     func() time.Time

	authorizer authorizer.UnconditionalAuthorizer // or nil
	refused    func(authorizer.Attributes)        // or nil
	admission  Admission                          // or nil
}

func (g *registry) create(k *kind, r *Request) *Response {
	w := &writeContext{request: r, kind: k}
	if r.Name != "" {
		return fail(apierrors.NewMethodNotSupported(k.gvr.GroupResource(), "create")).response()
	}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	v, failure := g.createObject(w, content, nil)
	if failure != nil {
		return failure.response()
	}
	return w.respond(http.StatusCreated, v)
}

// createObject stores a new object. applied is the configuration from which server-side apply made
// the object, and nil for other requests.
func (g *registry) createObject(w *writeContext, content map[string]any, applied *unstructured.Unstructured) (*version, *failure) {
	k, r := w.kind, w.request
	obj := &unstructured.Unstructured{Object: content}
	if failure := place(r, obj); failure != nil {
		return nil, failure
	}
	if failure := g.checkNamespace(k, r, obj); failure != nil {
		return nil, failure
	}
	obj.SetDeletionTimestamp(nil)
	unstructured.RemoveNestedField(content, "metadata", "deletionGracePeriodSeconds")
	unstructured.RemoveNestedField(content, "metadata", "selfLink")
	obj.SetCreationTimestamp(metav1.NewTime(g.now()))
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		g.generateName(k, obj)
	}
	obj.SetUID(g.minter.newUID(k, obj.GetNamespace(), obj.GetName()))
	if failure := w.prepareNew(g, obj, applied); failure != nil {
		return nil, failure
	}
	if errs := w.validate(obj, nil); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs))
	}
	if failure := cmp.Or(w.decide(g, obj, nil, false), g.authorizeCreate(w), g.checkService(k, obj)); failure != nil {
		return nil, failure
	}
	if k.definition == nil {
		builtin.WithoutEmptyLists(obj.Object)
	}
	if obj.GetResourceVersion() != "" && !r.DryRun {
		// Upstream, the storage layer returns this as an error without a reason.
		return nil, &failure{metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created"}}
	}
	if there := g.store.table(k).objects[key{obj.GetNamespace(), obj.GetName()}]; there != nil {
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
	if failure := g.checkSize(w, nil, obj); failure != nil {
		return nil, failure
	}
	return g.store.put(w, nil, obj.Object), nil
}

// dry returns a version that is not stored, as the answer to a dry run.
func dry(obj *unstructured.Unstructured) *version {
	return &version{namespace: obj.GetNamespace(), name: obj.GetName(), uid: obj.GetUID(), content: obj.Object}
}

// place checks the namespace and the name of an object against the request, and sets them if they
// are not set. The namespace of an object whose kind has none is dropped.
func place(r *Request, obj *unstructured.Unstructured) *failure {
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(r.Namespace, obj); err != nil {
		return fail(err)
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

// checkNamespace checks that the namespace of a new object exists and is not being deleted.
func (g *registry) checkNamespace(k *kind, r *Request, obj *unstructured.Unstructured) *failure {
	if !k.namespaced {
		return nil
	}
	v := g.store.tables[namespacesStorage].objects[key{name: obj.GetNamespace()}]
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

func (g *registry) update(k *kind, r *Request) *Response {
	if r.Subresource == "scale" {
		return g.updateScale(k, r)
	}
	w := &writeContext{request: r, kind: k}
	old := g.store.table(k).objects[key{r.Namespace, r.Name}]
	if response := g.repeated(w, old); response != nil {
		return response
	}
	content, failure := w.decode(r.Body)
	if failure != nil {
		return failure.response()
	}
	obj := &unstructured.Unstructured{Object: content}
	if failure := place(r, obj); failure != nil {
		return failure.response()
	}
	if old == nil {
		if k.definition == nil && builtin.CreatesOnUpdate(k.gvk) && r.Subresource == "" {
			if uid := obj.GetUID(); uid != "" {
				return k.wrongUID(r, uid, "").response()
			}
			if !r.DryRun {
				obj.SetResourceVersion("")
			}
			v, failure := g.createObject(w, content, nil)
			if failure != nil {
				return failure.response()
			}
			return w.respond(http.StatusCreated, v)
		}
		return fail(apierrors.NewNotFound(k.gvr.GroupResource(), r.Name)).response()
	}
	v, failure := g.updateObject(w, old, obj, false)
	if failure != nil {
		return failure.response()
	}
	return w.changed(old, v)
}

// updateObject stores a new state of an object. If tracked, its managed fields are already up to
// date.
func (g *registry) updateObject(w *writeContext, old *version, obj *unstructured.Unstructured, tracked bool) (*version, *failure) {
	k, r := w.kind, w.request
	before := old.unstructured()
	if uid := obj.GetUID(); uid != "" && uid != old.uid {
		return nil, k.wrongUID(r, uid, old.uid)
	}
	if failure := k.checkVersion(r, obj, before); failure != nil {
		return nil, failure
	}
	keepMetadata(obj, before)
	if m := metadata(obj.Object); !tracked && m["managedFields"] == nil && metadata(before.Object)["managedFields"] != nil {
		m["managedFields"] = metadata(before.Object)["managedFields"]
	}
	// As upstream, the fields are tracked before the strategy of the kind resets what the request
	// cannot change: a client that sends such a field with another value becomes its manager.
	w.setDefaults(obj)
	if !tracked {
		if failure := w.trackUpdate(g, before, obj); failure != nil {
			return nil, failure
		}
	}
	if failure := w.admit(g, obj, before); failure != nil {
		return nil, failure
	}
	w.prepareUpdate(g, obj, before)
	w.define()
	if errs := w.validate(obj, before); len(errs) > 0 {
		return nil, fail(apierrors.NewInvalid(k.gvk.GroupKind(), obj.GetName(), errs))
	}
	if failure := cmp.Or(w.decide(g, obj, before, false), w.authorizeApproval(g, before), g.checkService(k, obj)); failure != nil {
		return nil, failure
	}
	if k.definition == nil {
		builtin.WithoutEmptyLists(obj.Object)
	}
	// As upstream, an update that changes nothing, or only the times of managed fields, is not
	// written: the resource version stays, and watches see no event.
	obj.SetResourceVersion(before.GetResourceVersion())
	if same(obj, before) && !old.lacksDefaults {
		return old, nil
	}
	if r.DryRun {
		return dry(obj), nil
	}
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 && goesWithoutFinalizers(k, obj) {
		// As upstream, watches see the object as it was before the update, and the answer shows it
		// after.
		g.catalog.forget(g.store, k, g.store.remove(w, old))
		return dry(obj), nil
	}
	if failure := g.checkSize(w, old, obj); failure != nil {
		return nil, failure
	}
	return g.store.put(w, old, obj.Object), nil
}

// checkVersion refuses an update that is based on another state than the stored one.
func (k *kind) checkVersion(r *Request, obj, before *unstructured.Unstructured) *failure {
	switch {
	case obj.GetResourceVersion() == "" && k.unconditional():
		obj.SetResourceVersion(before.GetResourceVersion())
	case obj.GetResourceVersion() == "" && !k.unconditional():
		errs := field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
		errs[0].BadValue = uint64(0)
		return fail(apierrors.NewInvalid(schema.GroupKind{Group: k.gvr.Group, Kind: k.gvr.Resource}, r.Name, errs))
	case obj.GetResourceVersion() != "" && obj.GetResourceVersion() != before.GetResourceVersion():
		return conflict(k, r.Name)
	}
	return nil
}

func conflict(k *kind, name string) *failure {
	return fail(apierrors.NewConflict(k.gvr.GroupResource(), name,
		fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again")))
}

// unconditional reports whether an update of an object may omit its resource version.
func (k *kind) unconditional() bool {
	return k.definition == nil && builtin.UnconditionalUpdate(k.gvk)
}

// wrongUID is the answer of the real server if the object has another UID than the request says.
func (k *kind) wrongUID(r *Request, want, got types.UID) *failure {
	return fail(apierrors.NewConflict(k.gvr.GroupResource(), r.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v",
		k.registryKey(r), want, got)))
}

// registryKey is the key under which the real server stores an object in etcd. Some of its errors
// mention it.
func (k *kind) registryKey(r *Request) string {
	key := "/registry/"
	if r.DryRun {
		key = "/"
	}
	if k.definition != nil {
		key += k.gvr.Group + "/"
	}
	switch {
	case k.storage == servicesStorage:
		key += "services/specs"
	case k.gvr.Resource == "ingresses" && k.definition == nil:
		key += "ingress"
	default:
		key += k.gvr.Resource
	}
	if r.Namespace != "" {
		key += "/" + r.Namespace
	}
	return key + "/" + r.Name
}

// keepMetadata sets the metadata that an update cannot change to those of the stored object.
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

// same reports whether two states are equal, except for the times of their managed fields.
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
	return withoutMetadata(content, "managedFields")
}

// withoutMetadata returns an object without some of its metadata. It shares the others.
func withoutMetadata(content map[string]any, names ...string) map[string]any {
	m, ok := content["metadata"].(map[string]any)
	if !ok {
		return content
	}
	content, m = shallow(content), shallow(m)
	for _, name := range names {
		delete(m, name)
	}
	content["metadata"] = m
	return content
}
