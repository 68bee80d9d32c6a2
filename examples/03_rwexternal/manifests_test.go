package main

import (
	"errors"
	"io"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
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
			if err := user.Create(t.Context(), &obj); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
	}
}
