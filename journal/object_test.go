// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/journal"
)

func TestObject(t *testing.T) {
	kind := schema.GroupKind{Group: "example.com", Kind: "Database"}
	for _, tt := range []struct {
		key  types.NamespacedName
		want string
	}{
		{types.NamespacedName{Namespace: "default", Name: "db"}, "Database default/db"},
		{types.NamespacedName{Name: "db"}, "Database db"},
		{types.NamespacedName{}, "Database"},
		{types.NamespacedName{Namespace: "default"}, "Database"},
	} {
		o := journal.ObjectOf(kind, tt.key)
		if got := o.String(); got != tt.want {
			t.Errorf("%v: got %q, want %q", tt.key, got, tt.want)
		}
		if got := o.Key(); got != tt.key {
			t.Errorf("got key %v, want %v", got, tt.key)
		}
		if o.Group != kind.Group || o.Kind != kind.Kind {
			t.Errorf("got %s and %s, want %s", o.Group, o.Kind, kind)
		}
	}
}
