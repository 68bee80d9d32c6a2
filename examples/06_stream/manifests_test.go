// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
