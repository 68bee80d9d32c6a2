// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults are what holds for objects that neither say otherwise themselves nor by their
// namespace. The zero value manages objects, allows all verbs, and deletes what belongs to deleted
// objects.
type Defaults struct {
	// Reconcile is [ReconcileManage] if it is empty.
	Reconcile Reconcile
	// Reclaim is [ReclaimDelete] if it is empty.
	Reclaim Reclaim
	// Allow is [AllVerbs] if it is zero.
	Allow Verbs
	// Supported are the sets of verbs that the operator can do: what users choose has to be one of
	// them. All are if it is empty. It is for an operator that can't create without late-initialize,
	// or can't only observe.
	Supported []Verbs
	// IgnoreNamespaces says that the annotations of namespaces do not count, as for an operator that
	// may not read them. Otherwise the operator may get, list and watch namespaces.
	IgnoreNamespaces bool
	// Spec returns what the spec of an object says of its policy, such as a field that the kind had
	// before: values of the annotations, by their names. It is asked after the annotations of the
	// object, and before those of its namespace, so that it has no value for a field that says
	// nothing or has its default. Unknown names and values are invalid. It may be nil.
	Spec func(object metav1.Object) map[string]string
}

// Check returns an error that names all invalid values. An operator calls it when it starts. One
// that does not does nothing for the objects for which such a value would hold.
func (d Defaults) Check() error {
	r := &resolver{}
	r.decide(d)
	all := make([]error, len(r.invalid))
	for i, e := range r.invalid {
		all[i] = e
	}
	return errors.Join(all...)
}

// NeedsNamespace reports whether the decision about an object depends on its namespace.
func (d Defaults) NeedsNamespace(object metav1.Object) bool {
	return !d.IgnoreNamespaces && object.GetNamespace() != ""
}

// Resolve returns what an operator may do for an object.
//
//   - Namespace is that of the object, as the cluster has it. It is nil for a cluster-scoped
//     object, and with Defaults.IgnoreNamespaces: see [Defaults.NeedsNamespace].
//   - A namespace that could not be read is not one without annotations. If there is none, or one
//     of another name, although the decision depends on it, the decision is invalid, with reason
//     [reasonNamespaceUnknown].
//   - Neither object is changed.
func Resolve(object, namespace metav1.Object, defaults Defaults) Decision {
	r := &resolver{levels: []level{{source{origin: originObject}, object.GetAnnotations()}}}
	if defaults.Spec != nil {
		r.levels = append(r.levels, level{source{origin: originSpec}, defaults.Spec(object)})
	}
	if defaults.NeedsNamespace(object) {
		name := object.GetNamespace()
		if isNil(namespace) || namespace.GetName() != name {
			r.unread = name
		} else {
			r.levels = append(r.levels, level{source{origin: originNamespace, namespace: name}, namespace.GetAnnotations()})
		}
	}
	d := r.decide(defaults)
	d.request = RequestOf(object)
	if r.levels[len(r.levels)-1].source.origin == originNamespace {
		d.request.namespace = RequestOf(namespace).token
	}
	return d
}

// isNil reports whether there is no object, also if a pointer of a type says so.
func isNil(object metav1.Object) bool {
	if object == nil {
		return true
	}
	v := reflect.ValueOf(object)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// A level is one place of annotations.
type level struct {
	source      source
	annotations map[string]string
}

// A resolver looks for the parts of a decision, level by level.
type resolver struct {
	levels  []level
	unread  string // the namespace that should be among the levels
	invalid []*invalidError
}

func (r *resolver) decide(defaults Defaults) Decision {
	d := Decision{resolved: true}
	d.reconciled = find(r, ReconcileAnnotation, string(cmp.Or(defaults.Reconcile, ReconcileManage)), parseReconcile)
	d.reclaimed = find(r, ReclaimAnnotation, string(cmp.Or(defaults.Reclaim, ReclaimDelete)), parseReclaim)
	d.allowed = find(r, AllowAnnotation, cmp.Or(defaults.Allow, AllVerbs).String(), defaults.parse)
	r.findUnknown()
	d.unread, d.invalid = r.unread, r.invalid
	return d
}

// parse is ParseVerbs for the sets that are supported.
func (d Defaults) parse(text string) (Verbs, error) {
	verbs, err := ParseVerbs(text)
	if err != nil || len(d.Supported) == 0 || slices.Contains(d.Supported, verbs) {
		return verbs, err
	}
	names := make([]string, len(d.Supported))
	for i, supported := range d.Supported {
		names[i] = supported.String()
	}
	return 0, &invalidError{value: text, problem: "the operator does not support this set: use " + list(names, "or")}
}

// find returns the part of an annotation: that of the first level which has it, or the default.
func find[V any](r *resolver, annotation, standard string, parse func(string) (V, error)) choice[V] {
	source, text := source{origin: originOperator}, standard
	for _, l := range r.levels {
		if value, ok := l.annotations[annotation]; ok {
			source, text = l.source, value
			break
		}
	}
	value, err := parse(text)
	if invalid := (*invalidError)(nil); errors.As(err, &invalid) {
		invalid.annotation, invalid.source = annotation, source
		r.invalid = append(r.invalid, invalid)
	}
	return choice[V]{value: value, source: source}
}

// findUnknown finds the annotations in our domain that are none of ours.
func (r *resolver) findUnknown() {
	for _, l := range r.levels {
		for _, key := range slices.Sorted(maps.Keys(l.annotations)) {
			if strings.HasPrefix(key, domain+"/") && !slices.Contains(annotations, key) {
				r.invalid = append(r.invalid, &invalidError{
					annotation: key, source: l.source, value: l.annotations[key],
					problem: fmt.Sprintf("there is no such annotation%s: use %s", didYouMean(key[len(domain)+1:], annotationNames), list(annotations, "or")),
				})
			}
		}
	}
}
