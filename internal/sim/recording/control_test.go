// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// Any character of an object is recorded and read again, and none acts on who reads the file.
func TestAnyCharacterIsRecorded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.yaml")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"a\u007fb", "\u009b31m", "\ufffe", "\x1b]0;x\a", "\u202e", "\U000e0001", "\u2028\n---\n"})).Draw(rt, "text")
		r := &recording.Recording{Head: recording.Head{Recorded: recorded}, Objects: []*unstructured.Unstructured{
			object("v1", "ConfigMap", "a", map[string]any{"data": map[string]any{"x": text, "n": int64(1) << 60}}),
		}}
		written := textOf(t, r)
		if !printable.Is(written) {
			rt.Fatalf("%q is written as it is", text)
		}
		must(t, os.WriteFile(file, []byte(written), 0o600))
		got, err := recording.Read(file)
		if err != nil {
			rt.Fatalf("%q: %v", text, err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			rt.Fatalf("%q: -written +read:\n%s", text, diff)
		}
	})
}
