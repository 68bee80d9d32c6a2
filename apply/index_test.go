// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The index has what the watches have reported of a set, and its number is another one after each
// change of that.
func TestIndex(t *testing.T) {
	kind := schema.GroupKind{Kind: "ConfigMap"}
	object := func(name, set string) client.Object {
		cm := &corev1.ConfigMap{}
		cm.Namespace, cm.Name = "default", name
		if set != "" {
			cm.Labels = map[string]string{SetLabel: set}
		}
		return cm
	}
	var none client.Object
	x := &index{}
	last := uint64(0)
	for _, tt := range []struct {
		name        string
		before, now client.Object
		a, b        int // how many objects the sets have
		changed     bool
	}{
		{"created", none, object("x", "a"), 1, 0, true},
		{"another one", none, object("y", "a"), 2, 0, true},
		{"changed", object("x", "a"), object("x", "a"), 2, 0, false},
		{"of no set", none, object("z", ""), 2, 0, false},
		{"moved to another set", object("x", "a"), object("x", "b"), 1, 1, true},
		{"the label removed", object("x", "b"), object("x", ""), 1, 0, false},
		{"the label added", object("x", ""), object("x", "a"), 2, 0, true},
		{"deleted", object("x", "a"), none, 1, 0, true},
		{"deleted again", object("x", "a"), none, 1, 0, false},
		{"the last one deleted", object("y", "a"), none, 0, 0, true},
	} {
		x.note(kind, tt.before, tt.now)
		if a, b := len(x.of("a")), len(x.of("b")); a != tt.a || b != tt.b {
			t.Errorf("%s: the sets have %d and %d objects, want %d and %d", tt.name, a, b, tt.a, tt.b)
		}
		if now := x.changed("a"); (now != last) != tt.changed {
			t.Errorf("%s: the number was %d and is %d", tt.name, last, now)
		} else {
			last = now
		}
	}
	if len(x.sets) != 0 {
		t.Errorf("%d empty sets are kept", len(x.sets))
	}
}
