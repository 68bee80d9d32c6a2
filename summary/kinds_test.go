// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package summary_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/golden"
	"github.com/ctrlkit/ctrlkit/summary"
)

// parse returns the object of a document. Its numbers are those of encoding/json: float64.
func parse(t testing.TB, document string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &u.Object); err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	return u
}

// The status documents are as their controllers write them, shortened.
func TestKinds(t *testing.T) {
	golden.Stories(t, "kinds.story", func(documents []string) []string {
		return golden.Play(documents, func(line string) []string {
			_, document, ok := strings.Cut(line, ": {")
			if !ok {
				t.Fatalf("no document in %q", line)
			}
			return []string{summary.Of(parse(t, "{"+document)).String()}
		})
	})
}
