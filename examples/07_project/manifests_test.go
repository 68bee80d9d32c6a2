// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/handlers"
)

// applyAll creates what is described in files.
func applyAll(t *testing.T, user client.Client, files ...string) {
	t.Helper()
	for _, file := range files {
		content, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close() //nolint:errcheck // only read from
		for documents := yaml.NewYAMLOrJSONDecoder(content, 4096); ; {
			var obj unstructured.Unstructured
			if err := documents.Decode(&obj); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			// An API server with a mutating policy for a kind answers 503 until it has read the
			// schema of the kind, some seconds after its definition.
			err := retry.OnError(wait.Backoff{Duration: 100 * time.Millisecond, Steps: 100}, apierrors.IsServiceUnavailable, func() error {
				return user.Create(t.Context(), &obj)
			})
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}

// await waits until an object is as wanted. It is obj then.
func await[T client.Object](t *testing.T, c *cluster, obj T, what string, done func(T) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return err == nil && done(obj), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("%T %s is not %s: %v: %+v", obj, obj.GetName(), what, err, obj)
	}
}

// gone waits until an object is gone.
func (c *cluster) gone(t *testing.T, obj client.Object) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("%T %s is not gone: %v", obj, obj.GetName(), err)
	}
}

// awaitRegistry waits until a kind of the registry is as wanted.
func (c *cluster) awaitRegistry(t *testing.T, what string, done func(handlers.KindStatus) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(c.registry.Kinds(), done), nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %+v", what, err, c.registry.Kinds())
	}
}
