// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

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

	"github.com/ctrlkit/ctrlkit/internal/language/gen/golden"
	"github.com/ctrlkit/ctrlkit/state"
)

// getterCases are sets of objects, and what the getter of a state returns for them.
var getterCases = []struct {
	name, state string
	change      func(*golden.Shop) // of the target
	world       []string           // see cluster.object
	want        []string
	wantErr     string
	wantAs      any // for errors.As
}{
	{name: "by name: none", state: "password", world: []string{"Secret PLACE/password"}},
	{name: "by name: there", state: "password", world: []string{"Secret password"}, want: []string{"password"}},
	{
		name: "by name: the name is empty", state: "password",
		change: func(s *golden.Shop) { s.Spec.SecretName = "" }, wantErr: "name=${target.Spec.SecretName} is empty",
	},
	{
		name: "by name: impossible", state: "password",
		change: func(s *golden.Shop) { s.Spec.SecretName = "../x" }, wantErr: `"../x" is not a name`,
	},

	{name: "by an optional name: there", state: "optional", world: []string{"Secret password tier=gold"}, want: []string{"password"}},
	{name: "by an optional name: the name is empty", state: "optional", change: func(s *golden.Shop) { s.Spec.SecretName = "" }},
	{
		name: "by an optional name: a label is nil", state: "optional", world: []string{"Secret password tier=gold"},
		change: func(s *golden.Shop) { s.Spec.TierRef = nil },
	},
	{
		name: "by an optional name: a label is empty", state: "optional", world: []string{"Secret password tier="},
		change: func(s *golden.Shop) { s.Spec.TierRef = new(golden.Tier) },
	},
	{
		name: "by an optional name: another label", state: "optional", world: []string{"Secret password tier=iron"},
		wantErr: `label tier is "iron", not "gold"`, wantAs: new(*state.MismatchError),
	},
	{name: "list by an optional label: there", state: "optionalMaps", world: []string{"ConfigMap a tier=gold", "ConfigMap b tier="}, want: []string{"a"}},
	{
		name: "list by an optional label: empty", state: "optionalMaps", world: []string{"ConfigMap b tier=", "ConfigMap c"},
		change: func(s *golden.Shop) { s.Spec.Tier = "" },
	},
	{
		name: "list by an optional label: a number is nil", state: "optionalMaps", world: []string{"ConfigMap a tier=gold"},
		change: func(s *golden.Shop) { s.Spec.Replicas = nil },
	},

	{name: "by name and more: none", state: "shared", world: []string{"Secret other shop=shop .type=example.com/g owned"}},
	{
		name: "by name and more: there", state: "shared",
		world: []string{"Secret shop-shared shop=shop .type=example.com/g owned"}, want: []string{"shop-shared"},
	},
	{
		name: "by name and more: another label", state: "shared", world: []string{"Secret shop-shared shop=other .type=example.com/g owned"},
		wantErr: `label shop is "other", not "shop"`, wantAs: new(*state.MismatchError),
	},
	{
		name: "by name and more: another field", state: "shared", world: []string{"Secret shop-shared shop=shop .type=Opaque owned"},
		wantErr: `field .type is "Opaque", not "example.com/g"`, wantAs: new(*state.MismatchError),
	},
	{
		name: "by name and more: without an owner", state: "shared", world: []string{"Secret shop-shared shop=shop .type=example.com/g"},
		wantErr: "/shop-shared is not owned by ", wantAs: new(*state.NotOwnedError),
	},

	{name: "by label: none", state: "byLabel", world: []string{"Secret a shop=other", "Secret PLACE/b shop=shop"}},
	{name: "by label: one", state: "byLabel", world: []string{"Secret a shop=shop"}, want: []string{"a"}},
	{
		name: "by label: several", state: "byLabel", world: []string{"Secret b shop=shop", "Secret a shop=shop"},
		wantErr: "at most one object may match, but 2 do: ", wantAs: new(*state.SeveralError),
	},

	{name: "by field: none", state: "byField", world: []string{"Secret PLACE/a .type=example.com/g controlled", "Secret b .type=example.com/y controlled"}},
	{
		name: "by field: ours", state: "byField", want: []string{"a"},
		world: []string{"Secret a .type=example.com/g controlled", "Secret b .type=example.com/y controlled"},
	},
	{
		name: "by field: several", state: "byField", world: []string{"Secret a .type=example.com/g controlled", "Secret b .type=example.com/g"},
		wantErr: "at most one", wantAs: new(*state.SeveralError),
	},
	{
		name: "by field: not as the controller", state: "byField", world: []string{"Secret a .type=example.com/g owned"},
		wantErr: "it has no controller, its owners are Shop shop", wantAs: new(*state.NotOwnedError),
	},
	{
		name: "by field: of a namesake that is gone", state: "byField", world: []string{"Secret a .type=example.com/g foreign"},
		wantErr: "but by Shop shop: delete it", wantAs: new(*state.NotOwnedError),
	},

	{
		name: "list by labels: every one must match", state: "labelled", want: []string{"a", "d"},
		world: []string{"ConfigMap d shop=shop tier=gold more=x", "ConfigMap c shop=shop", "ConfigMap b shop=other tier=gold", "ConfigMap a shop=shop tier=gold"},
	},
	{
		name: "list by labels: an empty value", state: "labelled", change: func(s *golden.Shop) { s.Spec.Tier = "" },
		world: []string{"ConfigMap empty shop=shop tier=", "ConfigMap none shop=shop"}, want: []string{"empty"},
	},
	{
		name: "list by labels: impossible", state: "labelled", change: func(s *golden.Shop) { s.Spec.Tier = "gold & silver" },
		world: []string{"ConfigMap a shop=shop tier=gold"}, wantErr: `labels/tier="gold & silver" is not a value that a label can have`,
	},
	{
		name: "list by controller", state: "controlled", world: []string{"ConfigMap a controlled", "ConfigMap b owned", "ConfigMap c"},
		want: []string{"a"},
	},
	{
		name: "list of what is owned by any reference", state: "ownedByAny", want: []string{"a", "b", "c"},
		world: []string{"ConfigMap c controlled", "ConfigMap b foreign owned", "ConfigMap a owned", "ConfigMap d foreign", "ConfigMap e"},
	},
	{name: "list by name: without an owner", state: "namedOwned", world: []string{"ConfigMap passwordgold"}},
	{name: "list by name: owned, but not controlled", state: "namedOwned", world: []string{"ConfigMap passwordgold owned"}},
	{name: "list by name: ours", state: "namedOwned", world: []string{"ConfigMap passwordgold controlled", "ConfigMap b controlled"}, want: []string{"passwordgold"}},
	{
		name: "list by two fields and a label", state: "pods", want: []string{"all"},
		world: []string{"Pod all shop=shop .node=PLACE", "Pod node .node=PLACE", "Pod label shop=shop .node=elsewhere"},
	},
	{
		name: "list of the target's own kind", state: "siblings", change: func(s *golden.Shop) { s.Labels = map[string]string{"group": "g"} },
		world: []string{"Shop near group=g", "Shop far group=f"}, want: []string{"near", "shop"},
	},
	{
		name: "list by fields after pointers, nil in some objects", state: "byPointerField",
		world: []string{"Shop no-pointers"}, want: []string{"shop"},
	},

	{
		name: "list by operators of labels", state: "byOperators", want: []string{"a", "b"},
		world: []string{
			"ConfigMap a tier=gold", "ConfigMap b tier=silver shop=shop", "ConfigMap c tier=iron", "ConfigMap d", "ConfigMap e tier=gold shop=other",
			"ConfigMap f tier=gold retired=", "ConfigMap PLACE/g tier=gold",
		},
	},
	{
		name: "list by operators of labels: impossible", state: "byOperators", change: func(s *golden.Shop) { s.Spec.Tier = "gold & silver" },
		wantErr: "selecting by labels/tier in (gold & silver,silver): values[0]",
	},
	{
		name: "list by a label that is there", state: "byLiterals", want: []string{"a", "b"},
		world: []string{"ConfigMap a tier=iron shop=", "ConfigMap b tier=steel shop=x", "ConfigMap c tier=steel", "ConfigMap d shop=x"},
	},
	{
		name: "list by annotations", state: "annotated", want: []string{"a"},
		world: []string{
			"ConfigMap a shop=shop @note=shop", "ConfigMap b shop=shop @note=other", "ConfigMap c shop=shop", "ConfigMap d @note=shop",
			"ConfigMap e shop=shop @note=shop @hidden=",
		},
	},
	{
		name: "by name and an annotation", state: "namedAnnotated", world: []string{"Secret shop-noted @note=shop"}, want: []string{"shop-noted"},
	},
	{
		name: "by name and more: another annotation", state: "namedAnnotated", world: []string{"Secret shop-noted @note=other tier=iron"},
		wantErr: `label tier is "iron", want tier notin (iron), annotation note is "other", want note=shop`, wantAs: new(*state.MismatchError),
	},
	{
		name: "by name and more: no annotation", state: "namedAnnotated", world: []string{"Secret shop-noted"},
		wantErr: `annotation note is missing, want note=shop`, wantAs: new(*state.MismatchError),
	},

	{name: "after pointers", state: "pointers", world: []string{"ConfigMap far", "ConfigMap PLACE/far"}, want: []string{"PLACE/far"}},
	{
		name: "a nil pointer at the beginning", state: "pointers", change: func(s *golden.Shop) { s.Spec.Ref = nil },
		wantErr: "target.Spec.Ref is nil",
	},
	{
		name: "a nil pointer on the way", state: "pointers", change: func(s *golden.Shop) { s.Spec.Ref.Next = nil },
		wantErr: "target.Spec.Ref.Next is nil",
	},
	{
		name: "a nil pointer at the end", state: "pointers", change: func(s *golden.Shop) { s.Spec.Ref.Namespace = nil },
		wantErr: "target.Spec.Ref.Namespace is nil",
	},
	{
		name: "an empty name after pointers", state: "pointers", change: func(s *golden.Shop) { s.Spec.Ref.Next.Name = "" },
		wantErr: "name=${target.Spec.Ref.Next.Name} is empty",
	},
	{
		name: "a negative number is not a label", state: "values", change: func(s *golden.Shop) { s.Spec.Level = -2 },
		wantErr: `labels/level="-2"`,
	},
	{
		name: "values of many types", state: "values", want: []string{"a"},
		world: []string{"ConfigMap a level=2 size=65535 replicas=r3 open=false flag=true tier=gold hours=8-20", "ConfigMap b level=2"},
	},
	{
		name: "a joined name of which all parts are empty", state: "namedOwned",
		change:  func(s *golden.Shop) { s.Spec.SecretName, s.Spec.Tier = "", "" },
		wantErr: "name=${target.Spec.SecretName}${target.Spec.Tier} is empty",
	},
	{
		name: "a target without a namespace: in its namespace", state: "labelled", change: func(s *golden.Shop) { s.Namespace = "" },
		world: []string{"ConfigMap a shop=shop tier=gold"}, wantErr: "shop has no namespace to read from",
	},
	{
		name: "a target without a namespace: in a named namespace", state: "pointers", change: func(s *golden.Shop) { s.Namespace = "" },
		world: []string{"ConfigMap PLACE/far"}, want: []string{"PLACE/far"},
	},
}

// TestGetters runs the cases with a cache of the API server's objects, TestGettersInMemory with a
// fake client. A garbage collector beside the API server deletes what has an owner that is gone;
// the fake client does not set defaults, such as the priority of Pods.
func TestGetters(t *testing.T)         { testGetters(t, newCluster, " foreign") }
func TestGettersInMemory(t *testing.T) { testGetters(t, inMemory, "Pod ") }

func testGetters(t *testing.T, newCluster func(*testing.T) *cluster, except string) {
	for _, test := range getterCases {
		if strings.Contains(strings.Join(test.world, "\n"), except) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			target := c.shop("shop")
			if test.change != nil {
				test.change(target)
			}
			if target.Namespace != "" {
				c.create(target)
			}
			for _, text := range test.world {
				c.create(c.object(target, text))
			}

			got, err := c.read(golden.NewShopsState(c.cache(golden.IndexShops, golden.IndexShops), target), test.state)
			checkError(t, err, test.wantErr)
			if test.wantAs != nil && !errors.As(err, test.wantAs) {
				t.Errorf("error %T, want %T", err, test.wantAs)
			}
			want := []string{}
			for _, name := range test.want {
				want = append(want, strings.Replace(name, "PLACE", c.place, 1))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
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

// TestGettersEverywhere is a test of its own because it reads the objects of all namespaces.
func TestGettersEverywhere(t *testing.T) {
	c := newCluster(t)
	name := "everywhere-" + c.namespace
	target := c.shop(name)
	for _, text := range []string{"ConfigMap " + name, "ConfigMap PLACE/" + name, "ConfigMap PLACE/other"} {
		c.create(c.object(target, text))
	}
	got, err := c.read(golden.NewShopsState(c.cache(golden.IndexShops), target), "namedEverywhere")
	if want := []string{name, c.place + "/" + name}; err != nil || !slices.Equal(got, want) {
		t.Errorf("by name: %v, %v, want %v", got, err, want)
	}
}

func TestGettersWithoutIndex(t *testing.T) {
	c := newCluster(t)
	_, err := c.read(golden.NewShopsState(c.cache(), c.shop("shop")), "byField")
	checkError(t, err, "which a manager's cache has after the generated Index function was called")
}

func TestGettersOfAClusterScopedTarget(t *testing.T) {
	c := newCluster(t)
	region := newRegion(c)
	neighbour := &golden.Region{Spec: region.Spec}
	neighbour.Name = "zz-neighbor-" + c.namespace
	stranger := &golden.Region{}
	stranger.Name = "stranger-" + c.namespace
	c.create(neighbour, stranger)
	label := " region=" + region.Name
	for _, text := range []string{"Shop ours controlled", "Shop PLACE/ours-too controlled", "Shop not-ours"} {
		c.create(c.object(region, text+label))
	}
	states := golden.NewRegionsState(c.cache(golden.IndexShops, golden.IndexRegions), region)
	for state, want := range map[string][]string{
		"home": {c.namespace}, "neighbours": {region.Name, neighbour.Name}, "shops": {"ours", c.place + "/ours-too"},
	} {
		if got, err := c.read(states, state); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", state, got, err, want)
		}
	}
}

// newRegion creates a Region whose home is the test's namespace.
func newRegion(c *cluster) *golden.Region {
	region := &golden.Region{Spec: golden.Spec{Place: c.namespace, Group: "group-" + c.namespace}}
	region.Name = "region-" + c.namespace
	c.create(region)
	return region
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
	c := inMemory(t)
	target := c.shop("shop")
	c.create(c.object(target, "Secret password key=value"), c.object(target, "ConfigMap a shop=shop tier=gold"))
	reader := &counting{Reader: c.live}
	s := golden.NewShopsState(reader, target)
	for range 3 {
		single, err := s.GetPassword(t.Context())
		if err != nil || single.Labels["key"] != "value" {
			t.Fatalf("GetPassword = %v, %v", single, err)
		}
		single.Labels["key"] = "changed by the caller"
		var many []corev1.ConfigMap
		if many, err = s.GetLabelled(t.Context()); err != nil || len(many) != 1 || many[0].Labels["shop"] != "shop" {
			t.Fatalf("GetLabelled = %v, %v", many, err)
		}
		many[0].Labels["shop"] = "changed by the caller"
	}
	if reader.reads != 2 {
		t.Errorf("%d reads of two states, want 2", reader.reads)
	}
}
