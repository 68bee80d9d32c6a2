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
	"sigs.k8s.io/controller-runtime/pkg/client"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	regions "github.com/ctrlkit/ctrlkit/internal/gen/golden/cluster"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/several"
	_ "github.com/ctrlkit/ctrlkit/internal/gen/golden/testdata/nasty" // it compiles
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/values"
	"github.com/ctrlkit/ctrlkit/state"
)

// list returns the names of the objects that a getter of a list returns, as namespace/name without
// the test's own namespace.
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

// A getterCase is a set of objects, and what a getter returns for them.
type getterCase struct {
	spec    shopv1.Spec
	world   func(c *cluster, target *shopv1.Shop, place string) // place is the name of a second namespace, and the target's Spec.Place
	get     func(c *cluster, s *selectors.SelectorsState) ([]string, error)
	want    []string
	wantErr string
	wantAs  any // for errors.As
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

// run creates the objects of the case and compares what the getter returns.
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

// TestGettersEverywhere is a test of its own because it reads the objects of all namespaces.
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
