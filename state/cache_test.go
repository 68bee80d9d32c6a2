// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/state"
)

// TestCacheOnly limits caches by the calls of several managers, beside what the options had.
func TestCacheOnly(t *testing.T) {
	selection := func(text string) state.Selection {
		namespace, name, _ := strings.Cut(text, "/")
		return state.Selection{Namespace: namespace, Name: name}
	}
	mine := func(b cache.ByObject) map[client.Object]cache.ByObject {
		return map[client.Object]cache.ByObject{&corev1.Secret{}: b}
	}
	for _, test := range []struct {
		name      string
		had       map[client.Object]cache.ByObject
		only      []string
		want, err string
	}{
		{"one", nil, []string{"a/x"}, "a:metadata.name=x", ""},
		{"the same twice", nil, []string{"a/x", "a/x"}, "a:metadata.name=x", ""},
		{"two namespaces", nil, []string{"a/x", "b/y"}, "a:metadata.name=x b:metadata.name=y", ""},
		{"two of a namespace", nil, []string{"a/x", "a/y"}, "", "the options of the cache have metadata.name=x"},
		{"cluster-scoped", nil, []string{"/x"}, "metadata.name=x", ""},
		{"two cluster-scoped", nil, []string{"/x", "/y"}, "", "the options of the cache have metadata.name=x"},
		{"no name", nil, []string{"a/"}, "", "the name of the object is empty"},
		{"beside another namespace", mine(cache.ByObject{Namespaces: map[string]cache.Config{"b": {}}}), []string{"a/x"}, "a:metadata.name=x b:<nil>", ""},
		{"all of the namespace", mine(cache.ByObject{Namespaces: map[string]cache.Config{"a": {}}}), []string{"a/x"}, "", "have all objects"},
		{"all of the kind", mine(cache.ByObject{}), []string{"a/x"}, "", "have all objects"},
		{"by another field", mine(cache.ByObject{Field: fields.OneTermEqualSelector("type", "t")}), []string{"/x"}, "", "have type=t"},
		{"other kinds", map[client.Object]cache.ByObject{&corev1.Pod{}: {}}, []string{"a/x"}, "a:metadata.name=x", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			options := ctrl.Options{Cache: cache.Options{ByObject: test.had}}
			var err error
			for _, text := range test.only {
				if err == nil {
					err = state.CacheOnly(&options, &corev1.Secret{}, selection(text))
				}
			}
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v, want %s", err, test.err)
				}
				return
			}
			if got := limits(options); err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

// limits returns to which Secrets a cache is limited.
func limits(options ctrl.Options) string {
	var words []string
	for obj, limit := range options.Cache.ByObject {
		if _, ok := obj.(*corev1.Secret); !ok {
			continue
		}
		for _, namespace := range slices.Sorted(maps.Keys(limit.Namespaces)) {
			words = append(words, fmt.Sprintf("%s:%v", namespace, limit.Namespaces[namespace].FieldSelector))
		}
		if limit.Field != nil {
			words = append(words, limit.Field.String())
		}
	}
	return strings.Join(words, " ")
}
