// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package transition

import (
	"regexp"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A Change is a transition of one object.
type Change struct {
	Transition
	Name            string // "shop/a spec.size: minimum, 1"
	Before, Changed *unstructured.Unstructured
}

// Changes returns the changes of an object, by the definition of its kind, whose names an
// expression matches, and how many of these an API server refuses. There are none of a kind without
// a definition. apply creates the object in the API server, or changes it there as users do. A
// change that the API server does not let users take back is refused.
func Changes(definitions []*apiextensionsv1.CustomResourceDefinition, object *unstructured.Unstructured, expression *regexp.Regexp, apply func(*unstructured.Unstructured) error) (accepted []Change, refused int, err error) {
	kind := object.GroupVersionKind()
	for _, d := range definitions {
		if d.Spec.Group != kind.Group || d.Spec.Names.Kind != kind.Kind {
			continue
		}
		s, err := SchemaOf(d, kind.Version)
		if err != nil {
			return nil, 0, err
		}
		for _, t := range Of(s, object.Object) {
			name := strings.ToLower(kind.Kind) + "/" + object.GetName() + " " + t.String()
			if !expression.MatchString(name) {
				continue
			}
			changed := &unstructured.Unstructured{Object: t.Of(object.Object)}
			if apply(changed) != nil || apply(object) != nil {
				refused++
				continue
			}
			accepted = append(accepted, Change{Transition: t, Name: name, Before: object, Changed: changed})
		}
	}
	return accepted, refused, nil
}

// Alternate returns the changes of several objects: first the first one of each object.
func Alternate[C any](lists ...[]C) []C {
	var all []C
	for row := 0; ; row++ {
		before := len(all)
		for _, list := range lists {
			if row < len(list) {
				all = append(all, list[row])
			}
		}
		if len(all) == before {
			return all
		}
	}
}
