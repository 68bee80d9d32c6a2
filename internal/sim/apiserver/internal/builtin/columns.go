// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"strings"
	"sync"
	"time"

	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Columns are what tables of a kind show.
type Columns struct {
	Headers []metav1.TableColumnDefinition // shared: do not change them
	Cells   func(obj runtime.Object) []any
}

// ColumnsOf returns the columns of the tables of a built-in kind, under the names that kubectl prints
// for a real server. Kinds that are rarely looked at have a name and an age only.
func ColumnsOf(gvk schema.GroupVersionKind) Columns {
	if c, ok := columns()[gvk.GroupKind()]; ok && c.version == gvk.Version {
		return c.Columns
	}
	return plainColumns()
}

var plainColumns = sync.OnceValue(func() Columns {
	return newColumns("Name Age", func(obj metav1.Object) []any { return []any{obj.GetName(), age(obj)} }).Columns
})

// kindColumns are the columns of one kind, in the version that has their Go type.
type kindColumns struct {
	Columns
	version string
}

var columns = sync.OnceValue(func() map[schema.GroupKind]kindColumns {
	all := map[schema.GroupKind]kindColumns{}
	for _, some := range []map[schema.GroupKind]kindColumns{workloadColumns(), coreColumns(), otherColumns()} {
		for kind, c := range some {
			all[kind] = c
		}
	}
	return all
})

// newColumns returns columns from their names, separated by spaces: "_" stands for a space within a
// name. A name that ends in "*" is shown by "kubectl get -o wide" only, one in "#" is that of integers,
// and one in "?" that of yes or no. T is the Go type of the objects in version v1, or an interface that
// it implements.
func newColumns[T any](names string, cells func(T) []any) kindColumns {
	c := kindColumns{version: "v1"}
	for _, name := range strings.Fields(names) {
		header := metav1.TableColumnDefinition{Type: "string"}
		switch name[len(name)-1] {
		case '*':
			header.Priority = 1
		case '#':
			header.Type = "integer"
		case '?':
			header.Type = "boolean"
		}
		name = strings.TrimRight(name, "*#?")
		header.Name = strings.ReplaceAll(name, "_", " ")
		switch name {
		case "Name":
			header.Format, header.Description = "name", metav1.ObjectMeta{}.SwaggerDoc()["name"]
		case "Age":
			header.Description = metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"]
		}
		c.Headers = append(c.Headers, header)
	}
	c.Cells = func(obj runtime.Object) []any { return cells(obj.(T)) }
	return c
}

// age returns for how long an object has existed, as kubectl shows it.
func age(obj metav1.Object) string {
	return metatable.ConvertToHumanReadableDateType(obj.GetCreationTimestamp())
}

// since returns how long ago a time was, or none if it is not set.
func since(at *metav1.Time, none string) string {
	if at.IsZero() {
		return none
	}
	return duration.HumanDuration(time.Since(at.Time))
}

// orNone returns a text, or "<none>" for an empty one.
func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}

// orUnset returns a text, or "<unset>" for an empty one.
func orUnset(text *string) string {
	if text == nil {
		return "<unset>"
	}
	return *text
}

// selectorText returns a selector of labels as kubectl shows it.
func selectorText(selector *metav1.LabelSelector) string {
	if selector == nil {
		return "<none>"
	}
	return orNone(metav1.FormatLabelSelector(selector))
}

func labelsText(set map[string]string) string { return orNone(labels.FormatLabels(set)) }
