// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Selection says which objects of a kind are meant. An object is selected when it satisfies every
// field that is set.
type Selection struct {
	// Namespace is empty for cluster-scoped kinds, and for objects of all namespaces. A selection
	// in the namespace of a target gets it from NamespaceOf, which never returns an empty one.
	Namespace string
	// Name is empty when objects are not selected by name.
	Name string
	// Labels are labels that the object must have with these values. An empty value selects the
	// objects that have the label with an empty value.
	Labels map[string]string
	// Fields are the values that the object must have, by the name of an [Index].
	Fields map[string]string
	// Where are further requirements on labels.
	Where []Requirement
	// FieldWhere are further requirements on fields, whose keys are names of an [Index]. No cache
	// finds objects by them: see [Having].
	FieldWhere []Requirement
	// Annotations are requirements on annotations, of which there is no index and no selector: see
	// [Annotated].
	Annotations []Requirement
}

// NamespaceOf returns the namespace of target, or an error if target has none: to a client, the
// empty namespace means all namespaces.
func NamespaceOf(target client.Object) (string, error) {
	if namespace := target.GetNamespace(); namespace != "" {
		return namespace, nil
	}
	return "", fmt.Errorf("the target %s has no namespace to read from: "+
		"write namespace=NAME in the document, or namespace=* for all namespaces and for cluster-scoped kinds", target.GetName())
}

// Key returns a text for the selection. Two selections have the same key exactly if they are equal.
func (s Selection) Key() string {
	var key []byte
	add := func(text string) { key = append(strconv.AppendQuote(key, text), ' ') }
	add(s.Namespace)
	add(s.Name)
	for _, values := range []map[string]string{s.Labels, s.Fields} {
		add(strconv.Itoa(len(values)))
		for _, name := range slices.Sorted(maps.Keys(values)) {
			add(name)
			add(values[name])
		}
	}
	for _, requirements := range [][]Requirement{s.Where, s.Annotations, s.FieldWhere} {
		add(strconv.Itoa(len(requirements)))
		for _, r := range requirements {
			add(r.Key)
			add(string(r.Operator))
			add(strconv.Itoa(len(r.Values)))
			for _, value := range r.Values {
				add(value)
			}
		}
	}
	return string(key)
}

// List reads the selected objects into list.
//
//   - It ignores s.Name, s.Annotations and s.FieldWhere: see [Named], [Annotated] and [Having].
//   - A selection with Fields needs a reader that reads from a cache with these indexes.
//   - A label value that no object can have is an error rather than an empty list.
func (s Selection) List(ctx context.Context, reader client.Reader, list client.ObjectList) error {
	if err := s.checkLabels(); err != nil {
		return err
	}
	opts := []client.ListOption{client.InNamespace(s.Namespace)}
	if len(s.Labels)+len(s.Where) > 0 {
		selector, err := s.labelSelector()
		if err != nil {
			return err
		}
		opts = append(opts, client.MatchingLabelsSelector{Selector: selector})
	}
	if len(s.Fields) > 0 {
		opts = append(opts, client.MatchingFields(s.Fields))
	}
	err := reader.List(ctx, list, opts...)
	if err != nil && len(s.Fields) > 0 {
		names, where := slices.Sorted(maps.Keys(s.Fields)), ""
		if _, ok := list.(runtime.Unstructured); ok {
			where = ", and its client reads after the generated Cache function was"
		}
		return fmt.Errorf("listing by the index %s, which a manager's cache has after the generated Index function was called%s: %w",
			strings.Join(names, " and "), where, err)
	}
	return err
}

// ErrNothing is the error for a selection that refers to an optional field that is not set, or to one
// of another object that does not have it (yet). A generated getter then returns no object.
var ErrNothing = errors.New("the selection refers to a field that is not set")

// A MismatchError reports that the object which is selected by its name does not satisfy the other
// selectors. It is an error rather than an absent object because creating the object would fail
// while this one exists.
type MismatchError struct {
	Object types.NamespacedName
	// Mismatches are the selectors that are not satisfied, as `label app is "a", not "b"`.
	Mismatches []string
}

// Error names the object, what differs, and the remedy.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s exists but does not satisfy the other selectors: %s: change it, or delete it",
		nameOf(e.Object), strings.Join(e.Mismatches, ", "))
}

// Get reads the object with the name s.Name into obj, and returns obj.
//
//   - If there is no such object, Get returns nil without an error.
//   - If the object does not satisfy another field of s, Get returns a [MismatchError].
//   - The indexes compute the fields of the object. A field without its index is an error.
//   - Get works with every reader; the reader needs no cache with these indexes.
func Get[T any, P object[T]](ctx context.Context, reader client.Reader, s Selection, obj P, indexes ...Index[P]) (P, error) {
	obj, mismatches, err := get(ctx, reader, s, obj, indexes)
	if err != nil || len(mismatches) == 0 {
		return obj, err
	}
	return nil, &MismatchError{Object: client.ObjectKeyFromObject(obj), Mismatches: mismatches}
}

// GetList is [Get] for a state that is a list: it returns the object if it satisfies all selectors,
// and otherwise no objects.
func GetList[T any, P object[T]](ctx context.Context, reader client.Reader, s Selection, obj P, indexes ...Index[P]) ([]T, error) {
	obj, mismatches, err := get(ctx, reader, s, obj, indexes)
	if err != nil || obj == nil || len(mismatches) > 0 {
		return nil, err
	}
	return []T{*obj}, nil
}

// GetEach is [GetList] for several selections: it returns the objects that satisfy them, each once,
// sorted by namespace and name. It reads each into a copy of the empty object obj.
func GetEach[T any, P object[T]](ctx context.Context, reader client.Reader, each []Selection, obj P, indexes ...Index[P]) ([]T, error) {
	var all []T
	known := map[string]bool{}
	for _, s := range each {
		if known[s.Key()] {
			continue
		}
		known[s.Key()] = true
		items, err := GetList(ctx, reader, s, Copy[T, P](obj), indexes...)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return Sorted[T, P](all), nil
}

// get returns the object with the name s.Name, nil if there is none, and the selectors that it does
// not satisfy.
func get[T any, P object[T]](
	ctx context.Context, reader client.Reader, s Selection, obj P, indexes []Index[P],
) (found P, mismatches []string, err error) {
	_, err = s.labelSelector()
	if err := errors.Join(s.checkName(), s.checkLabels(), err); err != nil {
		return nil, nil, err
	}
	err = reader.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, obj)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	have := obj.GetLabels()
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if got, ok := have[key]; !ok {
			mismatches = append(mismatches, fmt.Sprintf("label %s is missing, not %q", key, s.Labels[key]))
		} else if got != s.Labels[key] {
			mismatches = append(mismatches, fmt.Sprintf("label %s is %q, not %q", key, got, s.Labels[key]))
		}
	}
	mismatches = append(mismatches, unmet("label", s.Where, have)...)
	mismatches = append(mismatches, unmet("annotation", s.Annotations, obj.GetAnnotations())...)
	fields, err := unmetFields(s.FieldWhere, obj, indexes)
	if err != nil {
		return nil, nil, fmt.Errorf("reading %s: %w", s.Name, err)
	}
	mismatches = append(mismatches, fields...)
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		i := slices.IndexFunc(indexes, func(index Index[P]) bool { return index.Name == name })
		if i < 0 {
			return nil, nil, fmt.Errorf("reading %s: the index %s was not given", s.Name, name)
		}
		field := strings.TrimPrefix(name, "ctrlkit:")
		if values := indexes[i].Values(obj); len(values) == 0 {
			mismatches = append(mismatches, fmt.Sprintf("field %s is not set, not %q", field, s.Fields[name]))
		} else if !slices.Contains(values, s.Fields[name]) {
			mismatches = append(mismatches, fmt.Sprintf("field %s is %q, not %q", field, values[0], s.Fields[name]))
		}
	}
	return obj, mismatches, nil
}

// checkName returns an error for a name that no object can have. A cache would report no such
// object.
func (s Selection) checkName() error {
	if s.Name == "" {
		return errors.New("the name of the object is empty")
	}
	if problems := content.IsPathSegmentName(s.Name); len(problems) > 0 {
		return fmt.Errorf("%q is not a name that an object can have: it %s", s.Name, strings.Join(problems, ", "))
	}
	return nil
}

// checkLabels returns an error for labels that no object can have. A cache would select nothing.
func (s Selection) checkLabels() error {
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("%q is not a label that an object can have: %s", key, strings.Join(problems, ", "))
		}
		value := s.Labels[key]
		if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
			return fmt.Errorf("labels/%s=%q is not a value that a label can have: %s", key, value, strings.Join(problems, ", "))
		}
	}
	return nil
}
