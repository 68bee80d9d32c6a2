// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/golden"
)

// object is one in the namespace default: "x" is a ConfigMap, "deployments.apps/x" a Deployment. Its content
// is YAML.
func object(t *testing.T, of, text string) apiserver.Object {
	t.Helper()
	kind, name, ok := strings.Cut(of, "/")
	if !ok {
		kind, name = "configmaps", of
	}
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := utiljson.Unmarshal(data, &content); err != nil {
		t.Fatal(err)
	}
	metadata, ok := content["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		content["metadata"] = metadata
	}
	metadata["name"], metadata["namespace"] = name, "default"
	return apiserver.Object{Resource: schema.ParseGroupResource(kind).WithVersion("v1"), Namespace: "default", Name: name, Content: content}
}

// Stories are in testdata: the objects of one world, and what a snapshot has of it, or also those of another
// one, and what differs. In both, uid-1 is the UID of ConfigMap x, and the operator has created what has the UID
// made.
func TestStories(t *testing.T) {
	golden.Stories(t, "stories.txt", func(story []string) []string {
		worlds := map[string][]apiserver.Object{}
		played := golden.Play(story, func(line string) []string {
			parts := strings.SplitN(line, " ", 3)
			worlds[parts[0]] = append(worlds[parts[0]], object(t, parts[1], parts[2]))
			return nil
		})
		taken := map[string]Snapshot{}
		for name, objects := range worlds {
			before := runtime.DeepCopyJSON(objects[0].Content)
			taken[name] = Take(Source{Objects: objects, Names: strings.NewReplacer("uid-1", "uid(configmaps default/x)"), Made: func(uid types.UID) bool { return uid == "made" }})
			if diff := cmp.Diff(before, objects[0].Content); diff != "" {
				t.Errorf("%s: the snapshot has changed the object of the server:\n%s", story[0], diff)
			}
		}
		if differences := taken["one"].Diff(taken["other"], nil); worlds["other"] == nil {
			played = append(played, taken["one"].lines()...)
		} else if len(differences) == 0 {
			played = append(played, "    no difference")
		} else {
			for _, d := range differences {
				played = append(played, "    "+d.String())
			}
		}
		return played
	})
}

// lines returns the things of a snapshot, with the fields that say more than their names.
func (want Snapshot) lines() (lines []string) {
	for _, thing := range slices.Sorted(maps.Keys(want)) {
		lines = append(lines, "    "+thing)
		for _, path := range slices.Sorted(maps.Keys(want[thing])) {
			if path != ".metadata.name" && path != ".metadata.namespace" {
				lines = append(lines, fmt.Sprintf("        %s: %s", path, want[thing][path]))
			}
		}
	}
	return lines
}

// Times and resource versions that were copied into texts and other fields are no differences; the
// version of a program is.
func TestCopiesOfWhatTheServerMakes(t *testing.T) {
	take := func(data string) Snapshot {
		isVersion := func(text string) bool { return text == "24" || text == "31" }
		return Take(Source{Objects: []apiserver.Object{object(t, "x", data)}, Names: strings.NewReplacer(), IsVersion: isVersion})
	}
	for _, tt := range []struct {
		name, a, b string
		same       bool
	}{
		{"a time as Go prints it", `{data: {at: "since 2000-03-30 23:55:00 +0000 UTC m=+0.5, by us"}}`, `{data: {at: "since 2000-03-31 00:07:10.25 +0000 UTC, by us"}}`, true},
		{"a time within a text", `{data: {at: "not before 2000-03-30T23:55:00Z"}}`, `{data: {at: "not before 2000-03-30T23:58:00Z"}}`, true},
		{"a date", `{data: {at: "2000-03-30"}}`, `{data: {at: "2000-03-31"}}`, false},
		{"another text around a time", `{data: {at: "since 2000-03-30T23:55:00Z"}}`, `{data: {at: "until 2000-03-30T23:55:00Z"}}`, false},
		{"versions by name", `{status: {secretsResourceVersion: {application: "24"}}}`, `{status: {secretsResourceVersion: {application: "31"}}}`, true},
		{"no resource version", `{status: {secretsResourceVersion: {application: "15.4"}}}`, `{status: {secretsResourceVersion: {application: "16.0"}}}`, false},
		{"versions of a program", `{status: {version: {postgres: "24"}}}`, `{status: {version: {postgres: "31"}}}`, false},
	} {
		if list := take(tt.a).Diff(take(tt.b), nil); (len(list) == 0) != tt.same {
			t.Errorf("%s: got %v, want the same: %t", tt.name, list, tt.same)
		}
	}
}

// Fields that are masked are no differences, and a world does not differ from itself.
func TestMask(t *testing.T) {
	want := Snapshot{"configmaps a": {".data.x": "1", ".data.y": "1"}, "configmaps b": {}}
	got := Snapshot{"configmaps a": {".data.x": "2", ".data.y": "2"}}
	x := oracle.Difference{Thing: "configmaps a", Path: ".data.x", Want: "1", Got: "2"}
	mask := map[string]bool{MaskKey(x): true, MaskKey(oracle.Difference{Thing: "configmaps b"}): true}
	y := oracle.Difference{Thing: "configmaps a", Path: ".data.y", Want: "1", Got: "2"}
	if diff := cmp.Diff([]oracle.Difference{y}, want.Diff(got, mask)); diff != "" {
		t.Error(diff)
	}
	if list := want.Diff(want, nil); len(list) > 0 {
		t.Errorf("a world differs from itself: %v", list)
	}
}

// Normalize sees a copy of each object, with the name that is compared, and may leave it out.
func TestNormalizeOfTheWorkload(t *testing.T) {
	content := object(t, "x-1", `{metadata: {generateName: x-}, data: {a: "1", b: "2"}}`)
	got := Take(Source{Objects: []apiserver.Object{content, object(t, "cache", "{}")}, Names: strings.NewReplacer(), Normalize: func(o *Object) bool {
		if o.Name == "x-*" {
			delete(o.Content["data"].(map[string]any), "b")
		}
		return o.Name != "cache" && o.Resource.Resource == "configmaps" && o.Namespace == "default"
	}})
	if fields := got["configmaps default/x-*"]; len(got) != 1 || fields[".data.a"] != "1" || fields[".data.b"] != "" {
		t.Errorf("got %v, want only a", got)
	}
	if content.Content["data"].(map[string]any)["b"] != "2" {
		t.Error("Normalize has changed the object of the server")
	}
}

func TestFields(t *testing.T) {
	fields := Fields(object(t, "x", `{metadata: {resourceVersion: "7"}}`).Content)
	if fields[".metadata.resourceVersion"] != "7" {
		t.Errorf("got %v, want all fields as they are", fields)
	}
}

// system is an external system with some resources.
type system struct{ resources []external.Resource }

func (s system) Inventory() []external.Resource     { return s.resources }
func (s system) Created(types.UID) int              { return 0 }
func (system) MintsIDs() bool                       { return false }
func (system) Drift(types.UID) (id string, ok bool) { return "", false }

func TestExternalResources(t *testing.T) {
	got := Take(Source{
		Systems: map[string]external.System{"buckets": system{[]external.Resource{
			{ID: "buckets-1", Name: "b", Owner: "u1", Tags: map[string]string{"owner": "u1"}, Spec: map[string]string{"size": "5"}},
			{ID: "there-before"},
		}}},
		Names: strings.NewReplacer("u1", "uid(configmaps default/x)", "buckets-1", "buckets-of-configmaps default/x"),
	})
	want := Snapshot{
		"external buckets buckets-of-configmaps default/x": {
			"name": "b", "owner": "uid(configmaps default/x)", "tags.owner": "uid(configmaps default/x)", "spec.size": "5",
		},
		"external buckets there-before": {"name": "", "tags": "{}", "spec": "{}"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
