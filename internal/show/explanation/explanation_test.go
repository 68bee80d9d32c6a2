// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explanation_test

import (
	"testing"
	"time"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// zone returns a cluster-scoped object with a condition Ready of generation 2, and fields besides.
func zone(ready string, metadata map[string]any) *unstructured.Unstructured {
	metadata["name"], metadata["generation"] = "eu", int64(2)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Zone", "metadata": metadata, "status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": "Because", "observedGeneration": int64(2), "lastTransitionTime": at(0).Format(time.RFC3339),
		}}},
	}}
}

func TestWrite(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/write.txtar")
	must(t, err)
	for i := 0; i+1 < len(archive.Files); i += 2 {
		x := explanation.Explanation{}
		must(t, yaml.UnmarshalStrict(archive.Files[i].Data, &x))
		x.Now = at(1)
		archive.Files[i+1].Data = []byte(textOf(t, &x))
	}
	golden(t, "testdata/write.txtar", string(txtar.Format(archive)))
}

// plain returns the object shop/db-password without a status.
func plain(apiVersion, kind string) *unstructured.Unstructured {
	metadata := map[string]any{"name": "db-password", "namespace": "shop"}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

func reportOf(controllers ...explanation.Controller) *explanation.Report {
	return &explanation.Report{Object: journal.Object{Kind: "Zone", Name: "eu"}, Controllers: controllers}
}

func TestReady(t *testing.T) {
	old := zone("True", map[string]any{})
	old.SetGeneration(3)
	for _, test := range []struct {
		name string
		obj  *unstructured.Unstructured
		want bool
	}{
		{"ready", zone("True", map[string]any{}), true},
		{"not ready", zone("False", map[string]any{}), false},
		{"not known", zone("Unknown", map[string]any{}), false},
		{"of an older spec", old, false},
		{"being deleted", zone("True", map[string]any{"deletionTimestamp": at(0).Format(time.RFC3339)}), false},
		{"no conditions", &unstructured.Unstructured{Object: map[string]any{"status": "fine"}}, false},
		{"no object", nil, false},
		{"of a kind that has no conditions", plain("v1", "Secret"), true},
		{"of a kind of Kubernetes without its conditions", plain("v1", "Pod"), false},
		{"of a kind of an operator", plain("example.com/v1", "Secret"), false},
	} {
		if got := (&explanation.Explanation{Object: test.obj}).Ready(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// A Secret that its operator waits or fails for is not ready, though it has no condition that says
// so.
func TestReadyWithoutConditions(t *testing.T) {
	for _, test := range []struct {
		name string
		c    explanation.Controller
		want bool
	}{
		{"fine", explanation.Controller{Steps: []explanation.Step{{Name: "A", State: explanation.StateDone}}}, true},
		{"waiting", explanation.Controller{Steps: []explanation.Step{{Name: "A", State: explanation.StateWaiting}}}, false},
		{"failing outside the steps", explanation.Controller{Failure: "conflict"}, false},
		{"left alone", explanation.Controller{Gated: "paused"}, false},
	} {
		x := &explanation.Explanation{Object: plain("v1", "Secret"), Report: reportOf(test.c)}
		if got := x.Ready(); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}
