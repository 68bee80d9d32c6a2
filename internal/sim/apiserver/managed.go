// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"fmt"
	"math/rand"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver/internal/builtin"
)

// manager returns the field manager of a kind, for writes through a subresource.
func (k *kind) manager(subresource string) (*managedfields.FieldManager, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if m, ok := k.managers[subresource]; ok {
		return m, nil
	}
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	if fields := k.resetFields(subresource); fields != nil {
		reset[fieldpath.APIVersion(k.gvr.GroupVersion().String())] = fieldpath.NewExcludeSetFilter(fields)
	}
	make, converter := managedfields.NewDefaultFieldManager, builtin.TypeConverter()
	switch {
	case k.definition != nil:
		make, converter = managedfields.NewDefaultCRDFieldManager, k.definition.TypeConverter()
	case k.gvr.Group == "apiextensions.k8s.io" || k.review:
		converter = managedfields.NewDeducedTypeConverter()
	}
	m, err := make(converter, objects{k}, objects{k}, objects{k}, k.gvk, k.gvk.GroupVersion(), subresource, reset)
	if err != nil {
		return nil, fmt.Errorf("preparing the managed fields of %s: %w", k.gvk, err)
	}
	if k.managers == nil {
		k.managers = map[string]*managedfields.FieldManager{}
	}
	k.managers[subresource] = m
	return m, nil
}

// resetFields returns the fields that a write through a subresource cannot change. As upstream,
// such a write does not become their owner either.
func (k *kind) resetFields(subresource string) *fieldpath.Set {
	switch {
	case subresource == "status" && k.definition != nil:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	case subresource == "status":
		set := fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))
		if name := builtin.FixedByStatus(k.gvk); name != "" {
			set.Insert(fieldpath.MakePathOrDie("metadata", name))
		}
		return set
	case k.isApproval(subresource):
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "certificate"))
	case k.storage == signingRequestsStorage:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status"))
	case k.status:
		return fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return nil
}

// trackUpdate records in an object who manages the fields that a write has changed.
func (w *writeContext) trackUpdate(g *registry, before, obj *unstructured.Unstructured) *failure {
	live := before
	if live == nil {
		live = w.kind.empty()
	} else {
		live = &unstructured.Unstructured{Object: convert(before.Object, w.kind.gvk)}
	}
	// The library reads the clock of the machine. It does not look at resource versions, which differ
	// between runs that do the same.
	version, versioned := metadata(obj.Object)["resourceVersion"]
	delete(metadata(obj.Object), "resourceVersion")
	in := inputsOf(w.kind, w.request.Subresource, w.request.manager(), time.Now().Unix(), withoutMetadata(live.Object, "resourceVersion"), obj.Object)
	known, ok := trackings.find(in)
	if ok {
		if draws(before, obj) {
			rand.Float32()
		}
	} else {
		m, err := w.kind.manager(w.request.Subresource)
		if err != nil {
			return fail(apierrors.NewInternalError(err))
		}
		in.values[5] = clone(obj.Object) // the live object is immutable
		known = obj.Object
		if u, ok := m.UpdateNoErrors(live, obj, w.request.manager()).(*unstructured.Unstructured); ok {
			known = u.Object
		}
		trackings.add(in, known)
	}
	obj.Object = cloneMap(known.(map[string]any))
	if versioned {
		metadata(obj.Object)["resourceVersion"] = version
	}
	g.stamp(before, obj)
	return nil
}

// trackings holds objects with their managed fields, without resource versions.
var trackings = newMemo(512)

// draws reports whether the library draws a random number when it tracks the first state of an
// object: it does for each that has no managed fields yet, to decide whether to track it. client-go
// shares the source of random numbers, and a plan must not depend on what is known already.
func draws(before, obj *unstructured.Unstructured) bool {
	return before == nil && len(obj.GetManagedFields()) == 0
}

// stamp sets the time of the managed-fields entries that were just made to the server's time: the
// library uses the clock of the machine.
func (g *registry) stamp(before, obj *unstructured.Unstructured) {
	metadata, _ := obj.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	if len(entries) == 0 {
		return
	}
	var old []any
	if before != nil {
		m, _ := before.Object["metadata"].(map[string]any)
		old, _ = m["managedFields"].([]any)
	}
	now := g.now().UTC().Format("2006-01-02T15:04:05Z")
	for _, e := range entries {
		entry, ok := e.(map[string]any)
		if !ok || entry["time"] == nil || isOneOf(entry, old) {
			continue
		}
		entry["time"] = now
	}
}

// isOneOf reports whether old has an entry with the same manager, operation, subresource and time.
func isOneOf(entry map[string]any, old []any) bool {
	for _, o := range old {
		m, ok := o.(map[string]any)
		if ok && m["manager"] == entry["manager"] && m["operation"] == entry["operation"] && m["subresource"] == entry["subresource"] && m["time"] == entry["time"] {
			return true
		}
	}
	return false
}

// trackApply merges an applied configuration into an object.
func (w *writeContext) trackApply(g *registry, old *version, applied *unstructured.Unstructured, manager string, force bool) (*unstructured.Unstructured, *failure) {
	m, err := w.kind.manager(w.request.Subresource)
	if err != nil {
		return nil, fail(apierrors.NewInternalError(err))
	}
	live := w.kind.empty()
	var before *unstructured.Unstructured
	if old != nil {
		before = old.unstructured()
		live = &unstructured.Unstructured{Object: deepCopy(convert(old.content, w.kind.gvk))}
	} else {
		live.SetName(w.request.Name)
		live.SetNamespace(w.request.Namespace)
	}
	merged, err := m.Apply(live, applied.DeepCopy(), manager, force)
	if err != nil {
		return nil, fail(err)
	}
	u, ok := merged.(*unstructured.Unstructured)
	if !ok {
		return nil, fail(apierrors.NewInternalError(fmt.Errorf("applying made a %T", merged)))
	}
	u = u.DeepCopy()
	g.stamp(before, u)
	return u, nil
}

// empty returns an object of the kind without any content.
func (k *kind) empty() *unstructured.Unstructured {
	if k.definition != nil {
		return empty(k.gvk)
	}
	return &unstructured.Unstructured{Object: builtin.Empty(k.gvk)}
}

func empty(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u
}

// convert returns an object in another version of its kind. Only apiVersion and kind differ, as
// with the conversion strategy None, and the names of the fields of Kubernetes events; the rest is
// shared with content.
func convert(content map[string]any, gvk schema.GroupVersionKind) map[string]any {
	apiVersion := gvk.GroupVersion().String()
	if content["apiVersion"] == apiVersion && content["kind"] == gvk.Kind {
		return content
	}
	out := shallow(content)
	if gvk.Kind == "Event" && (gvk.Group == "" || gvk.Group == "events.k8s.io") && out["apiVersion"] != nil {
		renameEvent(out, gvk)
	}
	out["apiVersion"], out["kind"] = apiVersion, gvk.Kind
	return out
}

// objects converts, defaults and creates objects for the field manager. All are unstructured and of
// one version, so there is little to do.
type objects struct{ kind *kind }

func (objects) Convert(in, out, context any) error {
	return fmt.Errorf("converting %T into %T is not supported", in, out)
}

func (objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return in, nil
	}
	gvk, ok := target.KindForGroupVersionKinds([]schema.GroupVersionKind{u.GroupVersionKind()})
	if !ok || gvk == u.GroupVersionKind() {
		return in, nil
	}
	return &unstructured.Unstructured{Object: convert(u.Object, gvk)}, nil
}

func (objects) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

func (objects) Default(runtime.Object) {}

func (o objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if gvk == o.kind.gvk {
		return o.kind.empty(), nil
	}
	return empty(gvk), nil
}

var (
	patchOptionsKind  = schema.GroupKind{Group: "meta.k8s.io", Kind: "PatchOptions"}
	unknownResource   = schema.GroupResource{}
	namespacesStorage = schema.GroupResource{Resource: "namespaces"}
)

func fieldErrors(name string, value any, text string) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath(name), value, text)}
}

func fieldRequired(name, text string) field.ErrorList {
	return field.ErrorList{field.Required(field.NewPath(name), text)}
}
