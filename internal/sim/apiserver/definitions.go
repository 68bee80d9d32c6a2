// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/crd"
)

// definitionsStorage is the resource of CustomResourceDefinitions.
var definitionsStorage = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// cleanupFinalizer keeps a CustomResourceDefinition until its objects are gone.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// admit does what admission plugins do upstream. It also checks a CustomResourceDefinition before it
// is stored, and serves its kinds.
func (w *writeContext) admit(g *registry, obj, before *unstructured.Unstructured) *failure {
	if before == nil {
		if failure := g.admitNew(w.kind, obj); failure != nil {
			return failure
		}
	}
	if failure := w.decide(g, obj, before, true); failure != nil {
		return failure
	}
	if w.kind.storage != definitionsStorage || obj.GetDeletionTimestamp() != nil || w.request.Actor == "server" {
		return nil
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, d); err != nil {
		return fail(apierrors.NewBadRequest(err.Error()))
	}
	// As the strategy of the kind does before it is validated: the status of a new definition is
	// dropped, and that of a changed one has the stored version.
	if before == nil {
		d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
	}
	for _, v := range d.Spec.Versions {
		if before != nil && v.Storage && !slices.Contains(d.Status.StoredVersions, v.Name) {
			d.Status.StoredVersions = append(d.Status.StoredVersions, v.Name)
		}
	}
	if crd.HasWebhook(d) {
		crd.DefaultWebhook(d)
		if c := d.Spec.Conversion.Webhook; c != nil && c.ClientConfig != nil && c.ClientConfig.Service != nil {
			port := int64(*c.ClientConfig.Service.Port)
			_ = unstructured.SetNestedField(obj.Object, port, "spec", "conversion", "webhook", "clientConfig", "service", "port") //nolint:errcheck // d was made of it
		}
		w.warnings = append(w.warnings, ignoredConversion(d.Name))
	}
	definition, errs := crd.Compile(d)
	if len(errs) > 0 {
		return fail(apierrors.NewInvalid(w.kind.gvk.GroupKind(), obj.GetName(), errs))
	}
	if !w.request.DryRun && w.request.Subresource == "" {
		w.defined = func() {
			g.establish(d, obj, before)
			g.catalog.serve(definition)
		}
	}
	return nil
}

// define establishes and serves what admit has compiled, when the strategy of the kind has reset
// the status.
func (w *writeContext) define() {
	if w.defined != nil {
		w.defined()
	}
}

// ignoredConversion says that the server calls no conversion webhook.
func ignoredConversion(name string) string {
	return "the API server in memory does not call the conversion webhook of " + name + ": versions with equal schemas differ only in apiVersion, and others cannot be used beside the stored one"
}

// establish sets the status of a CustomResourceDefinition. In a real cluster, the controllers of
// apiextensions-apiserver do that a moment later.
func (g *registry) establish(d *apiextensionsv1.CustomResourceDefinition, obj, before *unstructured.Unstructured) {
	now := g.now().UTC().Format("2006-01-02T15:04:05Z")
	condition := func(kind, reason, message string) any {
		return map[string]any{"type": kind, "status": "True", "lastTransitionTime": now, "reason": reason, "message": message}
	}
	names, _, _ := unstructured.NestedFieldCopy(obj.Object, "spec", "names")
	var stored []any
	for _, v := range d.Spec.Versions {
		if v.Storage {
			stored = append(stored, v.Name)
		}
	}
	status := map[string]any{
		"acceptedNames": names, "storedVersions": stored,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}
	if before != nil {
		status["storedVersions"] = withStored(before, stored)
		if conditions, ok, _ := unstructured.NestedFieldCopy(before.Object, "status", "conditions"); ok {
			status["conditions"] = conditions
		}
	}
	obj.Object["status"] = status
}

// withStored adds the stored version to those that objects may still be stored in.
func withStored(before *unstructured.Unstructured, stored []any) []any {
	all, _, _ := unstructured.NestedSlice(before.Object, "status", "storedVersions") //nolint:errcheck // it was written above
	for _, v := range stored {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// serve adds the kinds of a CustomResourceDefinition to the catalog.
func (c *catalog) serve(d *crd.Definition) {
	for gvr := range c.own {
		if gvr.Group == d.Group && gvr.Resource == d.Names.Plural {
			delete(c.own, gvr)
		}
	}
	for _, k := range kindsOf(d) {
		c.own[k.gvr] = k
	}
	c.answers = &sync.Map{}
}

// definedKinds holds the kinds of compiled definitions, which servers share as they do the
// definitions.
var definedKinds sync.Map

func kindsOf(d *crd.Definition) []*kind {
	if kinds, ok := definedKinds.Load(d); ok {
		return kinds.([]*kind)
	}
	var kinds []*kind
	for _, v := range d.Versions {
		gvr := v.GVK.GroupVersion().WithResource(d.Names.Plural)
		kinds = append(kinds, &kind{
			gvr: gvr, gvk: v.GVK, listKind: d.Names.ListKind, storage: gvr.GroupResource(), namespaced: d.Namespaced, singular: d.Names.Singular,
			shortNames: d.Names.ShortNames, categories: d.Names.Categories, status: v.Status, scale: v.Scale, definition: v,
			verbs: []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		})
	}
	definedKinds.Store(d, kinds)
	return kinds
}

// emptyDefinition deletes the objects of a CustomResourceDefinition that is being deleted, and then
// removes the finalizer that holds it. It reports whether it changed anything.
func (c *controllers) emptyDefinition(k *kind, v *version) bool {
	group, _, _ := unstructured.NestedString(v.content, "spec", "group")
	plural, _, _ := unstructured.NestedString(v.content, "spec", "names", "plural")
	storage := schema.GroupResource{Group: group, Resource: plural}
	acted := false
	if t := c.store.tables[storage]; t != nil {
		for _, o := range slices.Clone(t.sorted("")) {
			if o.unstructured().GetDeletionTimestamp() == nil {
				c.deleteBackground(t.kind, o, metav1.DeletePropagationBackground)
				acted = true
			}
		}
		if len(t.objects) > 0 {
			if acted {
				c.enqueue(k, v)
			}
			return acted
		}
	}
	c.catalog.forget(c.store, k, v)
	current := c.store.table(k).objects[key{name: v.name}]
	if current != nil && slices.Contains(current.unstructured().GetFinalizers(), cleanupFinalizer) {
		c.dropFinalizer(k, current, cleanupFinalizer)
	}
	return true
}

// forget removes the kinds of a CustomResourceDefinition that was removed, and ends their watches.
func (c *catalog) forget(s *store, k *kind, v *version) {
	if k.storage != definitionsStorage {
		return
	}
	group, _, _ := unstructured.NestedString(v.content, "spec", "group")
	plural, _, _ := unstructured.NestedString(v.content, "spec", "names", "plural")
	for gvr := range c.own {
		if gvr.Group == group && gvr.Resource == plural {
			delete(c.own, gvr)
			s.endWatches(gvr.GroupResource())
		}
	}
	c.answers = &sync.Map{}
}

func compareKinds(a, b *kind) int {
	return cmp.Or(cmp.Compare(a.gvr.Group, b.gvr.Group), cmp.Compare(a.gvr.Version, b.gvr.Version), cmp.Compare(a.gvr.Resource, b.gvr.Resource))
}
