// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/show/difference"
)

func list(elements ...any) map[string]any { return map[string]any{"l": elements} }

func named(name string, value any) any { return map[string]any{"name": name, "v": value} }

func TestOf(t *testing.T) {
	hidden := func(path string) bool { return path == "data.password" }
	for _, test := range []struct {
		name     string
		from, to map[string]any
		options  difference.Options
		want     []difference.Field
	}{
		{"nothing", list(named("a", 1)), list(named("a", 1)), difference.Options{}, nil},
		{"a field that is gone", map[string]any{"a": map[string]any{"b": "x"}}, map[string]any{"a": map[string]any{}}, difference.Options{}, []difference.Field{{Path: "a.b", From: "x"}}},
		{"a name with dots", map[string]any{"a": map[string]any{"x.y/z": "1"}}, map[string]any{"a": map[string]any{"x.y/z": "2"}}, difference.Options{}, []difference.Field{{Path: "a[x.y/z]", From: "1", To: "2"}}},
		{"by position", list(named("a", 1)), list(named("b", 1)), difference.Options{}, []difference.Field{{Path: "l[0].name", From: "a", To: "b"}}},
		{"by name, inserted before", list(named("b", 1)), list(named("a", 2), named("b", 1)), difference.Options{Keyed: true}, []difference.Field{{Path: "l[a]", To: named("a", 2)}}},
		{"by name, twice", list(named("a", 1), named("a", 2)), list(named("a", 1), named("a", 3)), difference.Options{Keyed: true}, []difference.Field{{Path: "l[1].v", From: 2, To: 3}}},
		{"hidden", map[string]any{"data": map[string]any{"password": "x", "user": "u"}}, map[string]any{"data": map[string]any{"password": "y", "user": "v"}}, difference.Options{Hidden: hidden},
			[]difference.Field{{Path: "data.password", From: "(hidden)", To: "(hidden)"}, {Path: "data.user", From: "u", To: "v"}}},
	} {
		if diff := cmp.Diff(test.want, difference.Of(test.from, test.to, test.options)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
