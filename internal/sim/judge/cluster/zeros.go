// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// OmitZeros removes from an object what an operator in Go reads as nothing, and may add or remove
// when it updates the object, for a finalizer for example. made is whether it is one that the
// operator creates.
//
// Of a custom resource, that is in the spec and in the status:
//
//   - zeros, empty texts and empty lists, which fields lose that are omitempty;
//   - empty objects and "0s" beside other fields, which fields have that are structs, such as
//     metav1.Duration, whether they are omitempty or not. An object that becomes empty by this is
//     an empty one.
//
// In a field that is a pointer, an empty object is a choice, as in "emptyDir: {}" and "podSelector:
// {}", and nothing in an object says what its fields are. So they stay in the spec of an object that
// the operator has created: it is what the operator has chosen, and has all structs from the start.
// A spec that others have written is the input of the operator, which is the same in all runs. And
// an object that is the only field of another one stays everywhere, as one of several alternatives:
// "state: {running: {}}".
//
// Of what runs Pods, it is those empty objects in the spec to which the API server gives no meaning.
// It knows itself what is nothing in the other kinds of Kubernetes.
func OmitZeros(group string, content map[string]any, made bool) {
	if !IsCustomGroup(group) {
		if group == "" || group == "apps" || group == "batch" {
			omitMeaningless(content["spec"])
		}
		return
	}
	for part, structs := range map[string]bool{"spec": !made, "status": true} {
		omitZeros(content[part], structs)
		if fields, ok := content[part].(map[string]any); ok && structs && len(fields) == 0 {
			delete(content, part)
		}
	}
}

func omitZeros(value any, structs bool) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			omitZeros(element, structs)
		}
	case map[string]any:
		structsHere := structs && len(v) > 1
		maps.DeleteFunc(v, func(_ string, child any) bool {
			omitZeros(child, structs)
			switch c := child.(type) {
			case []any:
				return len(c) == 0
			case map[string]any:
				return structsHere && len(c) == 0
			}
			return child == nil || child == int64(0) || child == float64(0) || child == false || child == "" || structsHere && child == "0s"
		})
	}
}

// meaningless are the fields of Pods and their containers in which an empty object says no more than
// none.
var meaningless = []string{"affinity", "nodeAffinity", "podAffinity", "podAntiAffinity", "securityContext", "lifecycle", "dnsConfig", "resources"}

func omitMeaningless(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			omitMeaningless(element)
		}
	case map[string]any:
		maps.DeleteFunc(v, func(name string, child any) bool {
			omitMeaningless(child)
			fields, ok := child.(map[string]any)
			return ok && len(fields) == 0 && slices.Contains(meaningless, name)
		})
	}
}

// IsCustomGroup reports whether a group is none of Kubernetes.
func IsCustomGroup(group string) bool { return !scheme.Scheme.IsGroupRegistered(group) }

// SameField reports whether two different values of a field of an object say the same: texts of one
// duration ("1h", "60m0s") or of one quantity ("1Gi", "1024Mi") in the spec or the status of a
// custom resource. An operator in Go that updates the object writes them in its own way. The object is
// named as plans do, "shops.example.com default/x".
func SameField(object, path string, a, b any) bool {
	kind, _, _ := strings.Cut(object, " ")
	path = strings.TrimPrefix(path, ".")
	if !strings.HasPrefix(path, "spec") && !strings.HasPrefix(path, "status") || !IsCustomGroup(schema.ParseGroupResource(kind).Group) {
		return false
	}
	x, isText := textOf(a)
	y, areTexts := textOf(b)
	return isText && areTexts && (x == y || sameDuration(x, y) || sameQuantity(x, y))
}

// textOf returns a text, or a whole number as text: a quantity may be either.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, v != ""
	case int64:
		return strconv.FormatInt(v, 10), true
	}
	return "", false
}

func sameDuration(a, b string) bool {
	x, err := time.ParseDuration(a)
	if err != nil {
		return false
	}
	y, err := time.ParseDuration(b)
	return err == nil && x == y
}

// sameQuantity reports whether two texts are one quantity. One of them must have a unit: "1.10" and
// "1.1" may be versions.
func sameQuantity(a, b string) bool {
	if !hasUnit(a) && !hasUnit(b) {
		return false
	}
	x, err := resource.ParseQuantity(a)
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(b)
	return err == nil && x.Cmp(y) == 0
}

func hasUnit(text string) bool { return strings.ContainsAny(text[len(text)-1:], "numkMGTPEi") }
