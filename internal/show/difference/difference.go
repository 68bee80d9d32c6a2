// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference finds the fields in which two states of an object differ, as plans show them.
package difference

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// A Field is a field that differs.
type Field struct {
	Path     string
	From, To any // nil if the field is absent
}

// Options are the options of [Of].
type Options struct {
	// Hidden reports whether the values of a field are replaced by a placeholder. It may be nil.
	Hidden func(path string) bool

	// Keyed compares the elements of lists by their names or types, if each has one, so that an
	// element that is inserted does not change those after it: "containers[app].image". Otherwise
	// the elements of lists of one length are compared by position: "containers[0].image".
	Keyed bool
}

// Of returns the fields in which two objects differ, ordered by path.
func Of(from, to map[string]any, o Options) []Field {
	d := &differ{Options: o}
	d.compare("", from, to)
	return d.found
}

type differ struct {
	Options
	found []Field
}

func (d *differ) compare(path string, from, to any) {
	a, isMap := from.(map[string]any)
	b, areMaps := to.(map[string]any)
	if isMap && areMaps {
		d.compareMaps(a, b, func(name string) string { return below(path, name) })
		return
	}
	x, isList := from.([]any)
	y, areLists := to.([]any)
	if isList && areLists {
		if a, b := keyed(x), keyed(y); d.Keyed && a != nil && b != nil {
			d.compareMaps(a, b, func(name string) string { return path + "[" + name + "]" })
			return
		}
		if len(x) == len(y) {
			for i := range x {
				d.compare(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
			}
			return
		}
	}
	if reflect.DeepEqual(from, to) {
		return
	}
	if d.Hidden != nil && d.Hidden(path) {
		from, to = hide(from), hide(to)
	}
	d.found = append(d.found, Field{path, from, to})
}

func (d *differ) compareMaps(a, b map[string]any, pathOf func(name string) string) {
	names := slices.Collect(maps.Keys(a))
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		d.compare(pathOf(name), a[name], b[name])
	}
}

// keyed returns the elements of a list by their names or types, or nil unless each has one of its
// own.
func keyed(list []any) map[string]any {
	elements := make(map[string]any, len(list))
	for _, e := range list {
		fields, ok := e.(map[string]any)
		if !ok {
			return nil
		}
		name, ok := fields["name"].(string)
		if !ok {
			name, ok = fields["type"].(string)
		}
		if _, twice := elements[name]; !ok || twice {
			return nil
		}
		elements[name] = e
	}
	return elements
}

func below(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./"):
		return path + "[" + name + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func hide(value any) any {
	if value == nil {
		return nil
	}
	return "(hidden)"
}
