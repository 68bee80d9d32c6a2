// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"fmt"
	"testing"
)

func TestFieldsOfAPatch(t *testing.T) {
	tests := []struct {
		name, patch string
		fields      func([]byte) []string
		want        []string
	}{
		{"leaves", `{"status":{"b":1,"a":{"c":[1,2]}}}`, fieldsOf, []string{".status.a.c", ".status.b"}},
		{"without what names the object", `{"metadata":{"name":"a","uid":"1","labels":{"x.y/z":"1"}}}`, fieldsOf, []string{".metadata.labels[x.y/z]"}},
		{"no JSON", `{`, fieldsOf, nil},
		{"a JSON patch", `[{"op":"test","path":"/spec/c"},{"op":"move","path":"/spec/a","from":"/spec/list/0/x"}]`, fieldsOfJSONPatch, []string{".spec.a", ".spec.list"}},
		{"an escaped pointer", `[{"op":"remove","path":"/metadata/labels/x~1y"}]`, fieldsOfJSONPatch, []string{".metadata.labels[x/y]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			same(t, "fields", test.want, test.fields([]byte(test.patch)))
		})
	}
}

func TestRelatedPaths(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{".spec.a", ".spec.a", true},
		{".spec", ".spec.a", true},
		{".status.conditions[Ready]", ".status.conditions", true},
		{".spec.a", ".spec.ab", false},
	} {
		same(t, fmt.Sprint(test.a), test.want, Related(test.a, test.b))
	}
}
