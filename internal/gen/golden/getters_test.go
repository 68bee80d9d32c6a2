package golden_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	regions "github.com/ctrlkit/ctrlkit/internal/gen/golden/cluster"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/several"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/testdata/beyond"
	_ "github.com/ctrlkit/ctrlkit/internal/gen/golden/testdata/nasty" // it compiles
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/values"
	"github.com/ctrlkit/ctrlkit/state"
)

// list names what a getter of a list returns, as namespace/name with the test's own namespace left
// out.
func list[T any, P interface {
	*T
	client.Object
}](c *cluster, get func(context.Context) ([]T, error)) ([]string, error) {
	items, err := get(c.t.Context())
	names := []string{}
	for i := range items {
		names = append(names, c.short(P(&items[i])))
	}
	return names, err
}

// one is list for a getter of a single object.
func one[T any, P interface {
	*T
	client.Object
}](c *cluster, get func(context.Context) (P, error)) ([]string, error) {
	obj, err := get(c.t.Context())
	if obj == nil {
		return []string{}, err
	}
	return []string{c.short(obj)}, err
}

func (c *cluster) short(obj client.Object) string {
	return strings.TrimPrefix(strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), c.namespace+"/"), "/")
}

// A getterCase is a world, and what a state of it is.
type getterCase struct {
	spec    shopv1.Spec
	world   func(c *cluster, target *shopv1.Shop, place string) // place is the name of a second namespace, and the target's Spec.Place
	get     func(c *cluster, s *selectors.SelectorsState) ([]string, error)
	want    []string
	wantErr string
	wantAs  any // for errors.As
}

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
	"single by name, owned: nobody's": {
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
	"single by name, owned by any: nobody's": {
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
	"single by label, owned: nobody's": {
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
	"list by name, owned: nobody's": {
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

func TestGetters(t *testing.T) {
	for name, test := range getterCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: test.spec}
			test.run(c, target, func() client.Reader { return c.cache(selectors.IndexSelectors) })
		})
	}
}

// TestGettersInMemory runs the same cases with a fake client.
func TestGettersInMemory(t *testing.T) {
	for name, test := range getterCases {
		if name == "list by two fields and a label" {
			continue // it needs the defaults of the API server
		}
		t.Run(name, func(t *testing.T) {
			target := &shopv1.Shop{ObjectMeta: metaIn("test", "shop"), Spec: test.spec}
			target.UID = "uid-of-the-shop"
			c := inMemory(t, target.Namespace)
			test.run(c, target, func() client.Reader { return c.live })
		})
	}
}

// run makes the world of the case and compares what the getter returns.
func (test *getterCase) run(c *cluster, target *shopv1.Shop, reader func() client.Reader) {
	c.t.Helper()
	place := c.newNamespace("place-")
	switch target.Spec.Place {
	case "":
		target.Spec.Place = place
	case "-":
		target.Spec.Place = ""
	}
	c.create(target)
	if test.world != nil {
		test.world(c, target, place)
	}

	got, err := test.get(c, selectors.NewSelectorsState(reader(), target))
	checkError(c.t, err, test.wantErr)
	if test.wantAs != nil && !errors.As(err, test.wantAs) {
		c.t.Errorf("error %T, want %T", err, test.wantAs)
	}
	want := []string{}
	for _, name := range test.want {
		want = append(want, strings.Replace(name, "PLACE", place, 1))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Errorf("(-want +got):\n%s", diff)
	}
}

func checkError(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("error: %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("error: %v, want one with %q", err, want)
	}
}

// TestGettersEverywhere is apart, because its objects are those of all namespaces.
func TestGettersEverywhere(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("everywhere-" + c.namespace)}
	other := c.newNamespace("zz-other-")
	label := "shop=" + target.Name
	c.create(target, configMap(metaIn(other, "x", label)), configMap(c.named("y", label)), configMap(metaIn(other, target.Name)))
	reader := c.cache(selectors.IndexSelectors)
	s := selectors.NewSelectorsState(reader, target)

	got, err := list(c, s.GetLabelledEverywhere)
	if want := []string{"y", other + "/x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("by label: %v, %v, want %v", got, err, want)
	}
	got, err = list(c, s.GetNamedEverywhere)
	if want := []string{other + "/" + target.Name}; err != nil || !slices.Equal(got, want) {
		t.Errorf("by name: %v, %v, want %v", got, err, want)
	}
	_, err = one(c, s.GetSomewhere)
	several := &state.SeveralError{}
	if !errors.As(err, &several) || len(several.Found) != 2 {
		t.Errorf("one by label: %v, want both that match", err)
	}
	if err := c.live.Delete(t.Context(), configMap(c.named("y"))); err != nil {
		t.Fatal(err)
	}
	s = selectors.NewSelectorsState(c.cache(selectors.IndexSelectors), target)
	got, err = one(c, s.GetSomewhere)
	if want := []string{other + "/x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("one by label: %v, %v, want %v", got, err, want)
	}
}

func TestGettersWithoutIndex(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop")}
	_, err := one(c, selectors.NewSelectorsState(c.cache(), target).GetByField)
	checkError(t, err, "which a manager's cache has after the generated Index function was called")
}

func TestFixedNamespace(t *testing.T) {
	c := newCluster(t)
	fixed := &corev1.Namespace{}
	fixed.Name = "fixed"
	c.create(fixed, configMap(metaIn("fixed", "a", "literal=yes")), configMap(metaIn("fixed", "b", "literal=no")), configMap(c.named("c", "literal=yes")))
	got, err := list(c, selectors.NewSelectorsState(c.cache(selectors.IndexSelectors), &shopv1.Shop{ObjectMeta: c.named("shop")}).GetInFixedNamespace)
	if want := []string{"fixed/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestGettersOfAClusterScopedTarget(t *testing.T) {
	c := newCluster(t)
	region := &shopv1.Region{Spec: shopv1.Spec{Place: c.namespace, Group: "group-" + c.namespace}}
	region.Name = c.namespace // the name of the namespace that holds its settings
	neighbour := &shopv1.Region{Spec: region.Spec}
	neighbour.Name = "neighbour-" + c.namespace
	stranger := &shopv1.Region{}
	stranger.Name = "stranger-" + c.namespace
	c.create(region, neighbour, stranger)
	label := "region=" + region.Name
	labelled := &corev1.Namespace{ObjectMeta: metaIn("", "labelled-"+c.namespace, label)}
	c.create(labelled, configMap(c.named("settings")),
		controlledBy(region, &shopv1.Shop{ObjectMeta: c.named("ours", label)}),
		controlledBy(region, &shopv1.Shop{ObjectMeta: metaIn(labelled.Name, "ours-too", label)}),
		&shopv1.Shop{ObjectMeta: c.named("not-ours", label)},
	)
	s := regions.NewRegionManagerState(c.cache(regions.IndexRegionManager), region)

	for what, check := range map[string]struct {
		get  func() ([]string, error)
		want []string
	}{
		"home":       {get: func() ([]string, error) { return one(c, s.GetHome) }, want: []string{c.namespace}},
		"namespaces": {get: func() ([]string, error) { return list(c, s.GetNamespaces) }, want: []string{labelled.Name}},
		"neighbours": {get: func() ([]string, error) { return list(c, s.GetNeighbours) }, want: []string{neighbour.Name, region.Name}},
		"shops":      {get: func() ([]string, error) { return list(c, s.GetShops) }, want: []string{labelled.Name + "/ours-too", "ours"}},
		"settings":   {get: func() ([]string, error) { return one(c, s.GetSettings) }, want: []string{"settings"}},
	} {
		if got, err := check.get(); err != nil || !slices.Equal(got, check.want) {
			t.Errorf("%s: %v, %v, want %v", what, got, err, check.want)
		}
	}
}

func TestValues(t *testing.T) {
	c := newCluster(t)
	place := c.newNamespace("place-")
	replicas, flag, tier := int32(3), shopv1.Flag(true), shopv1.Tier("gold")
	full := shopv1.Spec{
		SecretName: "a-", Tier: "gold", TierRef: &tier, Level: -2, Size: 65535, Replicas: &replicas, Open: false, Flag: &flag,
		Hours: shopv1.Hours{From: 8, To: 20}, Ref: &shopv1.Ref{Name: "shop", Namespace: &place, Next: &shopv1.Next{Name: "far"}},
	}
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: full}
	without := func(change func(*shopv1.Spec)) *shopv1.Shop {
		changed := target.DeepCopy()
		change(&changed.Spec)
		return changed
	}
	c.create(target, &shopv1.Shop{ObjectMeta: c.named("no-pointers"), Spec: shopv1.Spec{Tier: "gold"}},
		configMap(c.named("shop-meta-"+c.namespace)), configMap(metaIn(place, "far")), configMap(c.named("a-gold")),
		configMap(c.named("numbers", "size=65535", "replicas=r3", "level=2")),
		configMap(c.named("truths", "open=false", "flag=true")),
		configMap(c.named("texts", "tier=gold", "hours=8-20")))
	reader := c.cache(values.IndexValues)

	tests := map[string]struct {
		target  *shopv1.Shop
		get     func(s *values.ValuesState) ([]string, error)
		want    []string
		wantErr string
	}{
		"several references": {
			target: target, want: []string{"shop-meta-" + c.namespace},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetMixed) },
		},
		"pointers": {
			target: target, want: []string{place + "/far"},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
		},
		"a nil pointer at the beginning": {
			target: without(func(s *shopv1.Spec) { s.Ref = nil }), wantErr: "target.Spec.Ref is nil",
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
		},
		"a nil pointer on the way": {
			target: without(func(s *shopv1.Spec) { s.Ref.Next = nil }), wantErr: "target.Spec.Ref.Next is nil",
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
		},
		"a nil pointer at the end": {
			target: without(func(s *shopv1.Spec) { s.Ref.Namespace = nil }), wantErr: "target.Spec.Ref.Namespace is nil",
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
		},
		"an empty name behind pointers": {
			target: without(func(s *shopv1.Spec) { s.Ref.Next.Name = "" }), wantErr: "name=${target.Spec.Ref.Next.Name} is empty",
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetPointers) },
		},
		"a negative number is not a label": {
			target: target, wantErr: `labels/level="-2"`,
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetNumbers) },
		},
		"numbers": {
			target: without(func(s *shopv1.Spec) { s.Level = 2 }), want: []string{"numbers"},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetNumbers) },
		},
		"truths": {
			target: target, want: []string{"truths"},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetTruths) },
		},
		"a named string and a Stringer": {
			target: target, want: []string{"texts"},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetTexts) },
		},
		"joined without text between": {
			target: target, want: []string{"a-gold"},
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetJoined) },
		},
		"all of them empty": {
			target: without(func(s *shopv1.Spec) { s.SecretName, s.Tier = "", "" }), wantErr: "name=${target.Spec.SecretName}${target.Spec.Tier} is empty",
			get: func(s *values.ValuesState) ([]string, error) { return one(c, s.GetJoined) },
		},
		"fields behind pointers, nil in some objects": {
			target: target, want: []string{"shop"},
			get: func(s *values.ValuesState) ([]string, error) { return list(c, s.GetByPointerField) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.get(values.NewValuesState(reader, test.target))
			checkError(t, err, test.wantErr)
			if diff := cmp.Diff(append([]string{}, test.want...), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestBeyondTheChecker has states that the checker refuses: the generated code does not rely on
// that.
func TestBeyondTheChecker(t *testing.T) {
	c := newCluster(t)
	place := c.newNamespace("place-")
	c.create(configMap(metaIn(place, "a")), configMap(c.named("b")))
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{Place: place}}
	s := beyond.NewBeyondState(c.cache(beyond.IndexBeyond), target)
	got, err := list(c, s.GetByNamespaceField)
	if want := []string{place + "/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("by the field of the namespace: %v, %v, want %v", got, err, want)
	}
	_, err = one(c, s.GetQuotes)
	checkError(t, err, `labels/app="say \"hi\"" is not a value that a label can have`)
}

// TestSeveralManagersShareACache has managers of one package and of several, some of which need the
// same indexes.
func TestSeveralManagersShareACache(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{Place: c.namespace}}
	c.create(target)
	c.create(controlledBy(target, configMap(c.named("shop"))))
	reader := c.cache(several.IndexFirst, several.IndexSecond, several.IndexEmpty, several.IndexIdle, selectors.IndexSelectors,
		values.IndexValues, regions.IndexRegionManager, several.IndexFirst)
	for what, get := range map[string]func() ([]string, error){
		"First.settings":       func() ([]string, error) { return one(c, several.NewFirstState(reader, target).GetSettings) },
		"First.controlled":     func() ([]string, error) { return list(c, several.NewFirstState(reader, target).GetControlled) },
		"Second.settings":      func() ([]string, error) { return one(c, several.NewSecondState(reader, target).GetSettings) },
		"Selectors.controlled": func() ([]string, error) { return list(c, selectors.NewSelectorsState(reader, target).GetControlled) },
	} {
		if got, err := get(); err != nil || !slices.Equal(got, []string{"shop"}) {
			t.Errorf("%s: %v, %v, want [shop]", what, got, err)
		}
	}
}

// counting counts what is read.
type counting struct {
	client.Reader
	reads int
}

func (r *counting) Get(ctx context.Context, key types.NamespacedName, obj client.Object, opts ...client.GetOption) error {
	r.reads++
	return r.Reader.Get(ctx, key, obj, opts...)
}

func (r *counting) List(ctx context.Context, objects client.ObjectList, opts ...client.ListOption) error {
	r.reads++
	return r.Reader.List(ctx, objects, opts...)
}

func TestStatesAreReadOnceAndCopied(t *testing.T) {
	c := newCluster(t)
	target := &shopv1.Shop{ObjectMeta: c.named("shop"), Spec: shopv1.Spec{SecretName: "password"}}
	c.create(target, secret(c.named("password", "key=value")), configMap(c.named("a", "shop=shop", "tier=")))
	reader := &counting{Reader: c.live}
	s := selectors.NewSelectorsState(reader, target)
	for range 3 {
		single, err := s.GetByName(t.Context())
		if err != nil || single.Labels["key"] != "value" {
			t.Fatalf("GetByName = %v, %v", single, err)
		}
		single.Labels["key"] = "changed by the caller"
		many, err := s.GetLabelled(t.Context())
		if err != nil || len(many) != 1 || many[0].Labels["shop"] != "shop" {
			t.Fatalf("GetLabelled = %v, %v", many, err)
		}
		many[0].Labels["shop"] = "changed by the caller"
	}
	if reader.reads != 2 {
		t.Errorf("%d reads of two states, want 2", reader.reads)
	}
}
