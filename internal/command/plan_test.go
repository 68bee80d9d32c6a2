// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/recording"
)

// A recording is a cluster that a plan can be made for, beside other files.
func TestPlanFromARecording(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	object := func(name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": "shop", "creationTimestamp": "2026-01-01T11:00:00Z"},
		}}
	}
	recorded := &recording.Recording{
		Head:    recording.Head{Recorded: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Unread: []string{"secrets: forbidden"}},
		Objects: []*unstructured.Unstructured{object("recorded")}, Reports: []map[string]any{{"text": "x"}},
	}
	file, err := os.Create(filepath.Join(dir, "stuck.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := recorded.Write(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	plainFile := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(plainFile, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: shop}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var o plan.Options
	if err := (&planFlags{from: []string{file.Name(), plainFile}, namespace: "default"}).sourceOfFiles(&o); err != nil {
		t.Fatal(err)
	}
	contents, err := o.Source.Read(t.Context(), schema.GroupVersionResource{Version: "v1", Resource: "configmaps"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, content := range contents {
		obj := &unstructured.Unstructured{Object: content}
		names = append(names, obj.GetName())
		if age := time.Since(obj.GetCreationTimestamp().Time); obj.GetName() == "recorded" && (age < time.Hour || age > 2*time.Hour) {
			t.Errorf("what was an hour old when it was recorded is %s old", age)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"other", "recorded"}, names); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"secrets": "forbidden"}, o.Source.Refused()); diff != "" {
		t.Errorf("not known (-want +got):\n%s", diff)
	}
}
