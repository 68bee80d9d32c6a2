// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// start returns the objects from which the others are found.
func (r *reader) start(request Request, named []*unstructured.Unstructured) []*unstructured.Unstructured {
	if len(named) > 0 {
		return named
	}
	var list []*unstructured.Unstructured
	for _, uid := range r.order {
		obj := r.objects[uid]
		of := slices.Contains(request.Kinds, obj.GroupVersionKind().GroupKind()) && obj.GetNamespace() == ""
		if request.Namespace == "" || obj.GetNamespace() == request.Namespace {
			of = len(request.Kinds) == 0 || slices.Contains(request.Kinds, obj.GroupVersionKind().GroupKind())
		}
		if of {
			list = append(list, obj)
		}
	}
	return list
}

// related returns objects with what they own, are owned by and refer to, with that of those, and
// with their namespaces and the definitions of their groups. Of what is not owned by the first
// ones, only owners and references are followed.
func (r *reader) related(ctx context.Context, start, named []*unstructured.Unstructured) []*unstructured.Unstructured {
	for {
		c := &choice{reader: r, has: map[types.UID]bool{}, byName: map[string][]*unstructured.Unstructured{}, owned: map[types.UID][]*unstructured.Unstructured{}}
		for _, uid := range r.order {
			obj := r.objects[uid]
			c.byName[obj.GetName()] = append(c.byName[obj.GetName()], obj)
			for _, owner := range obj.GetOwnerReferences() {
				c.owned[owner.UID] = append(c.owned[owner.UID], obj)
			}
		}
		for _, obj := range start {
			c.take(obj, true)
		}
		if len(named) == 0 || len(c.elsewhere) == 0 {
			return c.complete()
		}
		for _, namespace := range c.elsewhere {
			r.load(ctx, namespace)
		}
	}
}

// choice is what has been chosen of the objects that were read.
type choice struct {
	*reader
	has       map[types.UID]bool // whether what they own is, too
	list      []*unstructured.Unstructured
	byName    map[string][]*unstructured.Unstructured
	owned     map[types.UID][]*unstructured.Unstructured
	elsewhere []string // namespaces that objects refer to, and that were not read
}

// take chooses an object and what belongs to it.
func (c *choice) take(obj *unstructured.Unstructured, withOwned bool) {
	owned, had := c.has[obj.GetUID()]
	if had && (owned || !withOwned) {
		return
	}
	c.has[obj.GetUID()] = withOwned
	if !had {
		c.list = append(c.list, obj)
	}
	if withOwned {
		for _, child := range c.owned[obj.GetUID()] {
			c.take(child, true)
		}
	}
	for _, owner := range obj.GetOwnerReferences() {
		if o := c.objects[owner.UID]; o != nil {
			c.take(o, false)
		}
	}
	if isDefinition(obj) {
		return // its schema is full of names
	}
	for field, value := range obj.Object {
		if field != "metadata" {
			c.refer(obj, strings.ToLower(field), nil, value)
		}
	}
}

// refer chooses what a value in an object refers to. path is that of the value, in small letters.
func (c *choice) refer(from *unstructured.Unstructured, path string, beside map[string]any, value any) {
	switch v := value.(type) {
	case map[string]any:
		for field, child := range v {
			c.refer(from, path+"."+strings.ToLower(field), v, child)
		}
	case []any:
		for _, child := range v {
			c.refer(from, path, beside, child)
		}
	case string:
		namespace, name := textOf(beside, "namespace"), v
		if ns, n, ok := strings.Cut(v, "/"); ok {
			namespace, name = ns, n
		} else if namespace == "" {
			namespace = from.GetNamespace()
		}
		found := false
		for _, to := range c.byName[name] {
			if (to.GetNamespace() == "" || to.GetNamespace() == namespace) && isMeant(to, path, textOf(beside, "kind")) {
				found = true
				c.take(to, false)
			}
		}
		if !found && namespace == textOf(beside, "namespace") && namespace != "" && strings.HasSuffix(path, ".name") && !c.loaded[namespace] && !c.loaded[""] {
			if !slices.Contains(c.elsewhere, namespace) {
				c.elsewhere = append(c.elsewhere, namespace)
			}
		}
	}
}

// hints are what fields with names of a kind have in their path, where that is not the kind.
var hints = map[string]string{"PersistentVolume": "volumename", "PersistentVolumeClaim": "claimname"}

// isMeant reports whether a field with the name of an object is about it: it stands beside the
// kind, the kind is part of its path, or the object is a Secret or a ConfigMap, to which fields of
// any name refer.
func isMeant(to *unstructured.Unstructured, path, kind string) bool {
	if kind != "" {
		return kind == to.GetKind()
	}
	if strings.Contains(path, strings.ToLower(to.GetKind())) || hints[to.GetKind()] != "" && strings.Contains(path, hints[to.GetKind()]) {
		return true
	}
	return to.GetAPIVersion() == "v1" && (to.GetKind() == "Secret" || to.GetKind() == "ConfigMap")
}

// complete adds the namespaces of the chosen objects, and the definitions of all kinds of their
// groups: an operator watches kinds of which there is no object, too.
func (c *choice) complete() []*unstructured.Unstructured {
	namespaces, groups := map[string]bool{}, map[string]bool{}
	for _, obj := range c.list {
		namespaces[obj.GetNamespace()], groups[obj.GroupVersionKind().Group] = true, true
	}
	for _, uid := range c.order {
		obj := c.objects[uid]
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group") //nolint:errcheck // "" is none
		isNamespace := obj.GetKind() == "Namespace" && obj.GetAPIVersion() == "v1"
		if (isNamespace && namespaces[obj.GetName()] || isDefinition(obj) && groups[group]) && !slices.Contains(c.list, obj) {
			c.list = append(c.list, obj)
		}
	}
	return c.list
}

// definitionOf returns the definition of a kind, or nil.
func (r *reader) definitionOf(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	for _, uid := range r.order {
		obj := r.objects[uid]
		if !isDefinition(obj) {
			continue
		}
		group, _, _ := unstructured.NestedString(obj.Object, "spec", "group")        //nolint:errcheck // "" is none
		kind, _, _ := unstructured.NestedString(obj.Object, "spec", "names", "kind") //nolint:errcheck // "" is none
		if group == gvk.Group && kind == gvk.Kind {
			return obj
		}
	}
	return nil
}

// addSubjects makes objects the subjects: those that were named, or else those that are being
// deleted, and those of custom kinds that say that something is wrong.
func (r *Recording) addSubjects(start []*unstructured.Unstructured, named bool, from *reader) {
	for _, obj := range start {
		state := StateOf(obj)
		wrong := state.Deleted || !state.Well() && (state.Behind || len(state.Conditions) > 0) && from.definitionOf(obj.GroupVersionKind()) != nil
		if s := SubjectOf(obj); (named || wrong) && r.Find(s) != nil {
			r.Subjects = append(r.Subjects, s)
		}
	}
}

// completeOwners removes references to owners that are not recorded: in a replay, the garbage
// collector would delete what they own.
func (r *Recording) completeOwners(from *reader) {
	has := map[types.UID]bool{}
	for _, obj := range r.Objects {
		has[obj.GetUID()] = true
	}
	for _, obj := range r.Objects {
		owners := obj.GetOwnerReferences()
		for _, o := range owners {
			if !has[o.UID] {
				from.unread[fmt.Sprintf("owner %s %s of %s", o.Kind, o.Name, SubjectOf(obj))] = "the reference to it is left out"
			}
		}
		if kept := slices.DeleteFunc(slices.Clone(owners), func(o metav1.OwnerReference) bool { return !has[o.UID] }); len(kept) < len(owners) {
			obj.SetOwnerReferences(kept)
		}
	}
}
