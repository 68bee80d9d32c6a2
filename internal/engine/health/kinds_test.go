// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/engine/health"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
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
			return []string{health.Of(parse(t, "{"+document)).String()}
		})
	})
}

// The objects of testdata/states.txt are in the state that their definitions give them.
func TestStates(t *testing.T) {
	table, err := os.ReadFile("testdata/states.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.SplitN(line, " | ", 3)
		if got := health.Of(parse(t, columns[2])); string(got.State) != columns[0] {
			t.Errorf("%s: %s, want %s", columns[1], got, columns[0])
		}
	}
}
