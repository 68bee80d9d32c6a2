// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package golden_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	shopv1 "github.com/ctrlkit/ctrlkit/internal/gen/golden/apis/shop/v1"
	"github.com/ctrlkit/ctrlkit/internal/gen/golden/selectors"
)

// A fakeIndexer registers indexes with a fake client.
type fakeIndexer struct{ *fake.ClientBuilder }

func (f fakeIndexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	f.WithIndex(obj, field, values)
	return nil
}

// inMemory is a cluster without an API server: a fake client with the indexes of the selectors.
func inMemory(t *testing.T, namespace string, objects ...client.Object) *cluster {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(newScheme(t)).WithObjects(objects...)
	if err := selectors.IndexSelectors(t.Context(), fakeIndexer{builder}); err != nil {
		t.Fatal(err)
	}
	return &cluster{t: t, live: builder.Build(), namespace: namespace}
}

// TestTargetWithoutANamespace has a cluster-scoped target whose type lacks the marker. It must not
// select in all namespaces, except where the document says so.
func TestTargetWithoutANamespace(t *testing.T) {
	target := &shopv1.Shop{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "shop"},
		Spec:       shopv1.Spec{SecretName: "password", Group: "g", Place: "place"},
	}
	world := []client.Object{
		configMap(metaIn("a", "shop", "shop=shop", "tier=")), secret(metaIn("b", "password", "shop=shop")),
		configMap(metaIn("place", "settings")), configMap(metaIn("fixed", "x", "literal=yes")),
	}
	c := inMemory(t, "", world...)
	s := selectors.NewSelectorsState(c.live, target)
	refused := map[string]func() ([]string, error){
		"single by name":     func() ([]string, error) { return one(c, s.GetByName) },
		"single by label":    func() ([]string, error) { return one(c, s.GetByLabel) },
		"single by field":    func() ([]string, error) { return one(c, s.GetByField) },
		"list of all":        func() ([]string, error) { return list(c, s.GetAll) },
		"list by labels":     func() ([]string, error) { return list(c, s.GetLabelled) },
		"list by controller": func() ([]string, error) { return list(c, s.GetControlled) },
		"list by name":       func() ([]string, error) { return list(c, s.GetNamedOwned) },
	}
	for name, get := range refused {
		t.Run(name, func(t *testing.T) {
			got, err := get()
			if err == nil || !strings.Contains(err.Error(), "shop has no namespace to read from") || len(got) > 0 {
				t.Errorf("got %v, %v, want the error that the target has no namespace", got, err)
			}
		})
	}
	allowed := map[string]struct {
		get  func() ([]string, error)
		want []string
	}{
		"single in a named namespace": {func() ([]string, error) { return one(c, s.GetInNamespace) }, []string{"place/settings"}},
		"list in a named namespace":   {func() ([]string, error) { return list(c, s.GetInFixedNamespace) }, []string{"fixed/x"}},
		"single in all namespaces":    {func() ([]string, error) { return one(c, s.GetSomewhere) }, []string{"a/shop"}},
		"list in all namespaces":      {func() ([]string, error) { return list(c, s.GetLabelledEverywhere) }, []string{"a/shop"}},
	}
	for name, test := range allowed {
		t.Run(name, func(t *testing.T) {
			got, err := test.get()
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
