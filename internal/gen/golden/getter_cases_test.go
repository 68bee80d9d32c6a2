// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	corev1 "k8s.io/api/core/v1"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
	"github.com/ctrlkit/ctrlkit/state"
)

func byName(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByName) }
func byNameOwned(c *cluster, s *selectors.SelectorsState) ([]string, error) {
	return one(c, s.GetByNameOwned)
}
func byNameOwnedByAny(c *cluster, s *selectors.SelectorsState) ([]string, error) {
	return one(c, s.GetByNameOwnedByAny)
}
func byLabel(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByLabel) }
func byLabelOwned(c *cluster, s *selectors.SelectorsState) ([]string, error) {
	return one(c, s.GetByLabelOwned)
}
func byField(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByField) }

// variouslyOwned has ConfigMaps that the target controls, one that it owns beside its controller,
// one of a namesake, and one without an owner.
func variouslyOwned(c *cluster, target *shopv1.Shop, _ string) {
	namesake := target.DeepCopy()
	namesake.UID = "another-uid"
	shared := controlledBy(namesake, configMap(c.named("b")))
	shared.OwnerReferences = append(shared.OwnerReferences, ownedBy(target, "Shop", configMap(c.named("x"))).OwnerReferences...)
	c.create(controlledBy(target, configMap(c.named("c"))), shared, controlledBy(target, configMap(c.named("a"))),
		controlledBy(namesake, configMap(c.named("d"))), configMap(c.named("e")))
}

var getterCases = map[string]getterCase{
	"single by name: none": {
		spec: shopv1.Spec{SecretName: "password"}, get: byName,
		world: func(c *cluster, _ *shopv1.Shop, place string) { c.create(secret(metaIn(place, "password"))) },
	},
	"single by name: there": {
		spec: shopv1.Spec{SecretName: "password"}, get: byName, want: []string{"password"},
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("password"))) },
	},
	"single by name: the name is empty": {
		get: byName, wantErr: "name=${target.Spec.SecretName} is empty",
	},
	"single by name: impossible": {
		spec: shopv1.Spec{SecretName: "../x"}, get: byName, wantErr: `"../x" is not a name`,
	},
	"single by name, owned: none": {get: byNameOwned},
	"single by name, owned: ours": {
		get: byNameOwned, want: []string{"shop-owned"},
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(controlledBy(target, secret(c.named("shop-owned"))))
		},
	},
	"single by name, owned: without an owner": {
		get: byNameOwned, wantErr: "/shop-owned is not controlled by ", wantAs: new(*state.NotOwnedError),
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("shop-owned"))) },
	},
	"single by name, owned: by a namesake that is gone": {
		get: byNameOwned, wantErr: "but by Shop shop: delete it", wantAs: new(*state.NotOwnedError),
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			predecessor := target.DeepCopy()
			predecessor.UID = "uid-of-an-earlier-one"
			c.create(controlledBy(predecessor, secret(c.named("shop-owned"))))
		},
	},
	"single by name, owned: not as the controller": {
		get: byNameOwned, wantErr: "it has no controller, its owners are Shop shop", wantAs: new(*state.NotOwnedError),
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(ownedBy(target, "Shop", secret(c.named("shop-owned"))))
		},
	},
	"single by name, owned by any: not as the controller": {
		get: byNameOwnedByAny, want: []string{"shop-shared"},
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(ownedBy(target, "Shop", secret(c.named("shop-shared"))))
		},
	},
	"single by name, owned by any: without an owner": {
		get: byNameOwnedByAny, wantErr: "/shop-shared is not owned by ", wantAs: new(*state.NotOwnedError),
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("shop-shared"))) },
	},
	"single by name and label: both": {
		spec: shopv1.Spec{SecretName: "password"}, want: []string{"password"},
		get:   func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndLabel) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("password", "shop=shop"))) },
	},
	"single by name and label: only the name": {
		spec: shopv1.Spec{SecretName: "password"}, wantErr: `label shop is "other", not "shop"`, wantAs: new(*state.MismatchError),
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndLabel) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secret(c.named("password", "shop=other")), secret(c.named("other", "shop=shop")))
		},
	},
	"single by name and field: both": {
		spec: shopv1.Spec{SecretName: "password"}, want: []string{"password"},
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndField) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secretOfType(c.named("password"), "example.com/shop"), secretOfType(c.named("other"), "example.com/shop"))
		},
	},
	"single by name and field: only the name": {
		spec: shopv1.Spec{SecretName: "password"}, wantErr: `field .type is "Opaque", not "example.com/shop"`, wantAs: new(*state.MismatchError),
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndField) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secretOfType(c.named("password"), "Opaque"), secretOfType(c.named("other"), "example.com/shop"))
		},
	},
	"single by name and field: none": {
		spec: shopv1.Spec{SecretName: "password"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAndField) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secretOfType(c.named("other"), "example.com/shop"))
		},
	},
	"single by the field of the name": {
		spec: shopv1.Spec{SecretName: "password"}, want: []string{"password"},
		get:   func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetByNameAsField) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("password"))) },
	},
	"single by label: none": {
		get: byLabel,
		world: func(c *cluster, _ *shopv1.Shop, place string) {
			c.create(secret(c.named("a", "shop=other")), secret(metaIn(place, "b", "shop=shop")))
		},
	},
	"single by label: one": {
		get: byLabel, want: []string{"a"},
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("a", "shop=shop"))) },
	},
	"single by label: several": {
		get: byLabel, wantErr: "at most one object may match, but 2 do: ", wantAs: new(*state.SeveralError),
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secret(c.named("b", "shop=shop")), secret(c.named("a", "shop=shop")))
		},
	},
	"single by label, owned: ours": {
		get: byLabelOwned, want: []string{"a"},
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(controlledBy(target, secret(c.named("a", "shop=shop", "owned=yes"))), secret(c.named("b", "shop=shop")))
		},
	},
	"single by label, owned: without an owner": {
		get: byLabelOwned, wantErr: "is not controlled by", wantAs: new(*state.NotOwnedError),
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(secret(c.named("a", "shop=shop", "owned=yes"))) },
	},
	"single by label, owned: ours and another": {
		get: byLabelOwned, wantErr: "at most one", wantAs: new(*state.SeveralError),
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(controlledBy(target, secret(c.named("a", "shop=shop", "owned=yes"))), secret(c.named("b", "shop=shop", "owned=yes")))
		},
	},
	"single by field: none": {
		spec: shopv1.Spec{Group: "x"}, get: byField,
		world: func(c *cluster, _ *shopv1.Shop, place string) {
			c.create(secretOfType(metaIn(place, "a"), "example.com/x"), secretOfType(c.named("b"), "example.com/y"))
		},
	},
	"single by field: one": {
		spec: shopv1.Spec{Group: "x"}, get: byField, want: []string{"a"},
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secretOfType(c.named("a"), "example.com/x"), secretOfType(c.named("b"), "example.com/y"))
		},
	},
	"single by field: several": {
		spec: shopv1.Spec{Group: "x"}, get: byField, wantErr: "at most one", wantAs: new(*state.SeveralError),
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(secretOfType(c.named("a"), "example.com/x"), secretOfType(c.named("b"), "example.com/x"))
		},
	},
	"single by name in another namespace": {
		want: []string{"PLACE/settings"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetInNamespace) },
		world: func(c *cluster, _ *shopv1.Shop, place string) {
			c.create(configMap(c.named("settings")), configMap(metaIn(place, "settings")))
		},
	},
	"single by name in another namespace: it is empty": {
		spec: shopv1.Spec{Place: "-"}, wantErr: "namespace=${target.Spec.Place} is empty",
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return one(c, s.GetInNamespace) },
	},
	"list of all": {
		want: []string{"a", "b"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetAll) },
		world: func(c *cluster, _ *shopv1.Shop, place string) {
			c.create(configMap(c.named("b")), configMap(c.named("a")), configMap(metaIn(place, "c")))
		},
	},
	"list of what is owned": {
		want:  []string{"a", "c"},
		get:   func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetAllOwned) },
		world: variouslyOwned,
	},
	"list of what is owned by any reference": {
		want:  []string{"a", "b", "c"},
		get:   func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetAllOwnedByAny) },
		world: variouslyOwned,
	},
	"list by labels: every one must match": {
		spec: shopv1.Spec{Tier: "gold"}, want: []string{"a", "d"},
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetLabelled) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(configMap(c.named("d", "shop=shop", "tier=gold", "more=x")), configMap(c.named("c", "shop=shop")),
				configMap(c.named("b", "shop=other", "tier=gold")), configMap(c.named("a", "shop=shop", "tier=gold")))
		},
	},
	"list by labels: an empty value": {
		want: []string{"empty"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetLabelled) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(configMap(c.named("empty", "shop=shop", "tier=")), configMap(c.named("none", "shop=shop")))
		},
	},
	"list by labels: impossible": {
		spec: shopv1.Spec{Tier: "gold & silver"}, wantErr: `labels/tier="gold & silver" is not a value that a label can have`,
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetLabelled) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(configMap(c.named("a", "shop=shop", "tier=gold")))
		},
	},
	"list by controller": {
		want: []string{"a"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetControlled) },
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			another := target.DeepCopy()
			another.Name = "another"
			c.create(controlledBy(target, configMap(c.named("a"))), controlledBy(another, configMap(c.named("b"))),
				ownedBy(target, "Shop", configMap(c.named("c"))))
		},
	},
	"list by two fields and a label": {
		want: []string{"all"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetPods) },
		world: func(c *cluster, target *shopv1.Shop, place string) {
			pod := func(name, node string, labels ...string) *corev1.Pod { // the API server sets the priority 0
				return &corev1.Pod{ObjectMeta: c.named(name, labels...), Spec: corev1.PodSpec{
					NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}},
				}}
			}
			c.create(pod("all", place, "shop=shop"), pod("node", place), pod("label", "elsewhere", "shop=shop"))
		},
	},
	"list by name and label": {
		want: []string{"shop"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetNamedAndLabelled) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(configMap(c.named("shop", "shop=shop")), configMap(c.named("other", "shop=shop")))
		},
	},
	"list by name and label: only the name": {
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetNamedAndLabelled) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) {
			c.create(configMap(c.named("shop")), configMap(c.named("other", "shop=shop")))
		},
	},
	"list by name, owned: without an owner": {
		get:   func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetNamedOwned) },
		world: func(c *cluster, _ *shopv1.Shop, _ string) { c.create(configMap(c.named("shop"))) },
	},
	"list by name, owned: ours": {
		want: []string{"shop"},
		get:  func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetNamedOwned) },
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			c.create(controlledBy(target, configMap(c.named("shop"))))
		},
	},
	"list of the target's own kind": {
		spec: shopv1.Spec{Group: "g"}, want: []string{"near", "shop"},
		get: func(c *cluster, s *selectors.SelectorsState) ([]string, error) { return list(c, s.GetSiblings) },
		world: func(c *cluster, target *shopv1.Shop, _ string) {
			target.Labels = map[string]string{"group": "g"}
			if err := c.live.Update(c.t.Context(), target); err != nil {
				c.t.Fatal(err)
			}
			c.create(&shopv1.Shop{ObjectMeta: c.named("near", "group=g")}, &shopv1.Shop{ObjectMeta: c.named("far", "group=f")})
		},
	},
}
