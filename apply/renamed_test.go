// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/step"
)

// A step that has another name now keeps its objects, and prunes those that are not wanted any
// more: if it says what it was called. Otherwise they belong to another set, and stay as they are.
func TestRenamed(t *testing.T) {
	for _, tt := range []struct {
		name    string
		former  []string
		refused bool
	}{
		{"it says so", []string{"Parts"}, false},
		{"with the engine", []string{"shops/Parts"}, false},
		{"it does not say so", nil, true},
		{"another name", []string{"Pieces"}, true},
		{"another engine", []string{"stores/Parts"}, true},
	} {
		for _, watched := range []bool{false, true} {
			o, shop := testOperator(t, func(_ *Shop, set *apply.Set) {
				set.Add(newConfigMap("stays"), newConfigMap("goes"), newRole())
			}, apply.Owns(&corev1.ConfigMap{}), apply.Tracks(&rbacv1.ClusterRole{}))
			o.mustSettle(shop)

			now := o.operatorOf(apply.Children("Items", func(_ context.Context, _ *step.Request[*Shop], set *apply.Set) error {
				set.Add(newConfigMap("stays"))
				return nil
			}, apply.Owns(&corev1.ConfigMap{}), apply.Tracks(&rbacv1.ClusterRole{}), apply.Renamed(tt.former...)))
			if watched {
				now.watch()
			}
			err := now.settle(shop)
			if refused := err != nil && strings.Contains(err.Error(), "belongs to another set"); refused != tt.refused || err != nil && !refused {
				t.Errorf("%s, watched %t: error %v", tt.name, watched, err)
			}
			left := []bool{o.get(&corev1.ConfigMap{}, "stays"), o.get(&corev1.ConfigMap{}, "goes"), o.get(newRole(), "role")}
			if want := []bool{true, tt.refused, tt.refused}; !slices.Equal(left, want) {
				t.Errorf("%s, watched %t: left are %v, want %v", tt.name, watched, left, want)
			}
			if tt.refused {
				continue
			}
			o.get(shop, "shop")
			for annotation := range shop.Annotations {
				if strings.HasPrefix(annotation, "tracked.apply.ctrlkit.dev/") {
					t.Errorf("%s, watched %t: the owner still has %s", tt.name, watched, annotation)
				}
			}
		}
	}
}

// What a renamed step still wants is remembered under its new name, and no longer under the old
// one.
func TestRenamedMovesWhatIsTracked(t *testing.T) {
	o, shop := testOperator(t, func(_ *Shop, set *apply.Set) { set.Add(newRole()) }, apply.Tracks(&rbacv1.ClusterRole{}))
	o.mustSettle(shop)
	now := o.operatorOf(apply.Children("Items", func(_ context.Context, _ *step.Request[*Shop], set *apply.Set) error {
		set.Add(newRole())
		return nil
	}, apply.Tracks(&rbacv1.ClusterRole{}), apply.Renamed("Parts")))
	now.mustSettle(shop)
	o.get(shop, "shop")
	const prefix = "tracked.apply.ctrlkit.dev/"
	if len(shop.Annotations) != 1 || !strings.Contains(shop.Annotations[prefix+"shops-Itemsdeb88c45"], "ClusterRole") {
		t.Errorf("the owner has %v", shop.Annotations)
	}
}
