// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var byData = Index[*corev1.ConfigMap]{
	Name:   "ctrlkit:.data.x",
	Values: func(obj *corev1.ConfigMap) []string { return []string{obj.Data["x"]} },
}

// TestRegisterTwice uses a real cache because it depends on the text of client-go's error. A cache
// that is not started needs no API server.
func TestRegisterTwice(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := cache.New(&rest.Config{Host: "localhost:1"}, cache.Options{Scheme: scheme.Scheme, Mapper: mapper})
	must(t, err)
	for range 2 {
		must(t, byData.Register(t.Context(), c, &corev1.ConfigMap{}))
	}
}

// refusing is a FieldIndexer that returns an error.
type refusing struct{ err error }

func (r refusing) IndexField(context.Context, client.Object, string, client.IndexerFunc) error {
	return r.err
}

func TestRegisterReportsOtherErrors(t *testing.T) {
	stopped := errors.New("informer was stopped")
	err := byData.Register(t.Context(), refusing{stopped}, &corev1.ConfigMap{})
	if !errors.Is(err, stopped) {
		t.Errorf("Register = %v, want the error of the indexer", err)
	}
	wantError(t, err, "registering the index ctrlkit:.data.x of *v1.ConfigMap")
}

func TestControllerName(t *testing.T) {
	yes := true
	owner := func(apiVersion, kind string, controller *bool) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "owner", Controller: controller}
	}
	tests := map[string]struct {
		owners []metav1.OwnerReference
		want   []string
	}{
		"none":            {},
		"not controlling": {owners: []metav1.OwnerReference{owner("shop.example.com/v1", "Shop", nil)}},
		"the kind":        {owners: []metav1.OwnerReference{owner("shop.example.com/v1", "Shop", &yes)}, want: []string{"owner"}},
		"another version": {owners: []metav1.OwnerReference{owner("shop.example.com/v2", "Shop", &yes)}, want: []string{"owner"}},
		"another group":   {owners: []metav1.OwnerReference{owner("example.com/v1", "Shop", &yes)}},
		"another kind":    {owners: []metav1.OwnerReference{owner("shop.example.com/v1", "Mall", &yes)}},
		"nonsense":        {owners: []metav1.OwnerReference{owner("a/b/c", "Shop", &yes)}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			obj := withOwners(configMap("ns", "x", nil), test.owners...)
			same(t, "controller", test.want, ControllerName(obj, "shop.example.com", "Shop"))
		})
	}
}
