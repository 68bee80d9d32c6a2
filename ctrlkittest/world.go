// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
)

// A world is an API server with the objects of a test in it.
type world struct {
	t       testing.TB
	server  *apiserver.Server
	direct  client.Client // to arrange, and to look at
	client  client.Client // of the step
	reader  client.Reader
	owner   client.Object // the object of the step
	gvk     schema.GroupVersionKind
	spaces  map[string]bool
	subject client.ObjectKey
}

// defaultName is the name of an object that was given none.
const defaultName = "test"

// newWorld returns a world with a copy of obj in it.
func newWorld(t testing.TB, s *settings, obj client.Object, finalizers ...string) *world {
	t.Helper()
	w := &world{t: t, server: apiserver.New(apiserver.Options{Seed: 1}), spaces: map[string]bool{"": true, metav1.NamespaceDefault: true}}
	if err := w.server.Install(s.definitions(t)...); err != nil {
		t.Fatalf("ctrlkittest: installing the definitions: %v", err)
	}
	all := append([]client.Object{obj}, s.objects...)
	for _, o := range all {
		w.define(s, o)
	}
	direct, err := client.NewWithWatch(w.server.Config(), client.Options{Scheme: s.scheme})
	if err != nil {
		t.Fatalf("ctrlkittest: %v", err)
	}
	w.direct, w.client = direct, direct
	if s.funcs != nil {
		w.client = interceptor.NewClient(direct, *s.funcs)
	}
	w.reader = w.client
	obj = obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	obj.SetFinalizers(append(obj.GetFinalizers(), finalizers...))
	if obj.GetName() == "" {
		obj.SetName(defaultName)
	}
	w.gvk, _ = direct.GroupVersionKindFor(obj)
	w.create(obj)
	w.owner, w.subject = obj, client.ObjectKeyFromObject(obj)
	for _, o := range s.objects {
		w.create(o.DeepCopyObject().(client.Object)) //nolint:errcheck // a copy has the type
	}
	return w
}

// define installs a definition for the kind of an object that the server does not know.
func (w *world) define(s *settings, obj client.Object) {
	w.t.Helper()
	gvk, err := apiutil.GVKForObject(obj, s.scheme)
	if err != nil {
		w.t.Fatalf("ctrlkittest: kind of %T: %v: use WithScheme", obj, err)
	}
	if _, _, err := w.server.ResourceFor(gvk); err == nil {
		return
	}
	plural, singular := meta.UnsafeGuessKindToResource(gvk)
	anything := &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	err = w.server.Install(&apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural.Resource + "." + gvk.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: gvk.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Kind: gvk.Kind, ListKind: gvk.Kind + "List", Plural: plural.Resource, Singular: singular.Resource,
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: gvk.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: anything},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	})
	if err != nil {
		w.t.Fatalf("ctrlkittest: defining %s: %v: use WithCRDs", gvk.Kind, err)
	}
}

// create creates an object with its status, and its namespace.
func (w *world) create(obj client.Object) {
	w.t.Helper()
	namespaced, err := w.direct.IsObjectNamespaced(obj)
	if err != nil {
		w.t.Fatalf("ctrlkittest: %T: %v", obj, err)
	}
	if namespaced && obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if namespace := obj.GetNamespace(); !w.spaces[namespace] {
		w.spaces[namespace] = true
		err := w.direct.Create(w.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			w.t.Fatalf("ctrlkittest: creating namespace %q: %v", namespace, err)
		}
	}
	w.adopt(obj)
	obj.SetResourceVersion("")
	status := obj.DeepCopyObject().(client.Object) //nolint:errcheck // a copy has the type
	if err := w.direct.Create(w.t.Context(), obj); err != nil {
		w.t.Fatalf("ctrlkittest: creating %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
	if managed := status.GetManagedFields(); len(managed) > 0 { // a creation makes its client the manager of all fields
		obj.SetManagedFields(managed)
		if err := w.direct.Update(w.t.Context(), obj); err != nil {
			w.t.Fatalf("ctrlkittest: writing the managed fields of %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
	if content(w.t, status)["status"] == nil {
		return
	}
	status.SetResourceVersion(obj.GetResourceVersion())
	if err := w.direct.Status().Update(w.t.Context(), status); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatalf("ctrlkittest: writing the status of %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	} else if err == nil {
		obj.SetResourceVersion(status.GetResourceVersion())
	}
}

// adopt fills in the UID of the object of the step, which the test can't know.
func (w *world) adopt(obj client.Object) {
	owners := obj.GetOwnerReferences()
	for i, o := range owners {
		if w.owner != nil && o.UID == "" && o.Kind == w.gvk.Kind && strings.HasPrefix(o.APIVersion, w.gvk.Group) && o.Name == w.owner.GetName() {
			owners[i].UID = w.owner.GetUID()
		}
	}
	obj.SetOwnerReferences(owners)
}

// content returns an object as JSON has it, without a status that says nothing.
func content(t testing.TB, obj client.Object) map[string]any {
	t.Helper()
	data, err := json.Marshal(obj)
	if err != nil {
		t.Fatalf("ctrlkittest: encoding %T: %v", obj, err)
	}
	root := make(map[string]any)
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatalf("ctrlkittest: encoding %T: %v", obj, err)
	}
	if status, ok := root["status"].(map[string]any); ok && len(status) == 0 {
		delete(root, "status")
	}
	unstructured.RemoveNestedField(root, "metadata", "creationTimestamp")
	return root
}
