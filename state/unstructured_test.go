// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ctrlkit/ctrlkit/state"
)

func ExampleField() {
	route := state.NewObject("traffic.example.com/v1", "Route")
	route.Object["spec"] = map[string]any{"port": int64(80), "secure": true, "hosts": []any{"a"}}
	for _, name := range []string{"port", "secure", "hosts", "zone"} {
		if text := state.Field(route, "spec", name); text != nil {
			fmt.Printf("%s is %q\n", name, *text)
		} else {
			fmt.Println(name, "has no text")
		}
	}
	// Output:
	// port is "80"
	// secure is "true"
	// hosts has no text
	// zone has no text
}

// What is no object on the way, and what is null, has no text.
func TestFieldOfOtherThings(t *testing.T) {
	t.Parallel()
	obj := state.NewObject("v1", "Thing")
	obj.Object["spec"] = map[string]any{"a": "x", "b": nil, "c": 1.5, "d": map[string]any{}, "e": ""}
	for _, path := range [][]string{{"spec", "a", "deep"}, {"spec", "b"}, {"spec", "c"}, {"spec", "d"}, {"none", "a"}} {
		if text := state.Field(obj, path...); text != nil {
			t.Errorf("%v is %q", path, *text)
		}
	}
	if text := state.Field(obj, "spec", "e"); text == nil || *text != "" {
		t.Error("the empty text is none")
	}
}

// The kinds of unstructured objects have one Go type, and are limited one by one.
func TestCacheOnlyOfUnstructured(t *testing.T) {
	t.Parallel()
	var options ctrl.Options
	for _, kind := range []string{"Route", "Zone", "Route"} {
		if err := state.CacheOnly(&options, state.NewObject("traffic.example.com/v1", kind), state.Selection{Namespace: "a", Name: kind}); err != nil {
			t.Fatal(err)
		}
	}
	if len(options.Cache.ByObject) != 2 {
		t.Errorf("%d kinds are limited: %v", len(options.Cache.ByObject), options.Cache.ByObject)
	}
}

// What the options had is kept.
func TestCacheUnstructured(t *testing.T) {
	t.Parallel()
	yes := true
	options := ctrl.Options{Client: client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: &yes}}}
	state.CacheUnstructured(&options)
	if cache := options.Client.Cache; !cache.Unstructured || cache.EnableReadYourWritesConsistency != &yes {
		t.Errorf("got %+v", cache)
	}
}

// A client that reads unstructured objects from the API server has no index, and the error says so.
func TestIndexWithoutCache(t *testing.T) {
	t.Parallel()
	refused := interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
		return errors.New("field label not supported")
	}}
	selection := state.Selection{Fields: map[string]string{"ctrlkit:.spec.zone": "z"}}
	err := selection.List(t.Context(), fake.NewClientBuilder().WithInterceptorFuncs(refused).Build(), state.NewObjectList("traffic.example.com/v1", "Route"))
	if err == nil || !strings.Contains(err.Error(), "the generated Cache function") {
		t.Errorf("got %v", err)
	}
}
