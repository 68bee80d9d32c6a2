// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Requirement is what a selection asks of one label, annotation or field. It means what a
// requirement of a label selector does: NotIn and NotEquals also hold where the key is missing. To
// Exists and DoesNotExist, an empty field is missing.
type Requirement struct {
	Key string
	// Operator is one of In, NotIn, Equals, NotEquals, Exists and DoesNotExist.
	Operator selection.Operator
	// Values are one value for Equals and NotEquals, and none for Exists and DoesNotExist.
	Values []string
}

// String returns the requirement as it is in a label selector.
func (r Requirement) String() string {
	switch r.Operator {
	case selection.Exists:
		return r.Key
	case selection.DoesNotExist:
		return "!" + r.Key
	case selection.Equals, selection.NotEquals:
		return r.Key + string(r.Operator) + strings.Join(r.Values, ",")
	}
	return fmt.Sprintf("%s %s (%s)", r.Key, r.Operator, strings.Join(r.Values, ","))
}

// holds reports whether labels or annotations satisfy the requirement. No labels satisfy one with
// another operator.
func (r Requirement) holds(have map[string]string) bool {
	value, ok := have[r.Key]
	switch r.Operator {
	case selection.Exists:
		return ok
	case selection.DoesNotExist:
		return !ok
	case selection.In, selection.Equals:
		return ok && slices.Contains(r.Values, value)
	case selection.NotIn, selection.NotEquals:
		return !ok || !slices.Contains(r.Values, value)
	}
	return false
}

// hold reports whether labels or annotations satisfy all requirements.
func hold(requirements []Requirement, have map[string]string) bool {
	return !slices.ContainsFunc(requirements, func(r Requirement) bool { return !r.holds(have) })
}

// unmet returns what a [MismatchError] says of the requirements that are not satisfied.
func unmet(what string, requirements []Requirement, have map[string]string) []string {
	var texts []string
	for _, r := range requirements {
		if r.holds(have) {
			continue
		}
		if value, ok := have[r.Key]; ok {
			texts = append(texts, fmt.Sprintf("%s %s is %q, want %s", what, r.Key, value, r))
		} else {
			texts = append(texts, fmt.Sprintf("%s %s is missing, want %s", what, r.Key, r))
		}
	}
	return texts
}

// labelSelector returns the selector for Labels and Where, or an error for one that no object can
// satisfy because of a value that no label can have.
func (s Selection) labelSelector() (labels.Selector, error) {
	selector := labels.SelectorFromSet(s.Labels)
	for _, r := range s.Where {
		requirement, err := labels.NewRequirement(r.Key, r.Operator, r.Values)
		if err != nil {
			return nil, fmt.Errorf("selecting by labels/%s: %w", r, err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// Annotated returns the items whose annotations satisfy the requirements, in the same order. It
// overwrites items, like [slices.DeleteFunc].
func Annotated[T any, P object[T]](requirements []Requirement, items []T) []T {
	return keep(items, func(item P) bool { return hold(requirements, item.GetAnnotations()) })
}

// Having returns the items whose fields satisfy the requirements, in the same order. The keys of
// the requirements are the names of indexes, which compute the fields; no item satisfies one
// whose index is not given. It overwrites items, like [slices.DeleteFunc].
func Having[T any, P object[T]](requirements []Requirement, items []T, indexes ...Index[P]) []T {
	return keep(items, func(item P) bool {
		texts, err := unmetFields(requirements, item, indexes)
		return len(texts) == 0 && err == nil
	})
}

// unmetFields is unmet for the fields of obj.
func unmetFields[P client.Object](requirements []Requirement, obj P, indexes []Index[P]) ([]string, error) {
	var texts []string
	for _, r := range requirements {
		i := slices.IndexFunc(indexes, func(index Index[P]) bool { return index.Name == r.Key })
		if i < 0 {
			return nil, fmt.Errorf("the index %s was not given", r.Key)
		}
		r.Key = strings.TrimPrefix(r.Key, "ctrlkit:")
		have := map[string]string{}
		if values := indexes[i].Values(obj); len(values) > 0 && (values[0] != "" || len(r.Values) > 0) {
			have[r.Key] = values[0]
		}
		texts = append(texts, unmet("field", []Requirement{r}, have)...)
	}
	return texts, nil
}
