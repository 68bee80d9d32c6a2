// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// object is a ConfigMap in the namespace default, with more metadata and fields than its name.
func object(name string, metadata, fields map[string]any) apiserver.Object {
	content := map[string]any{"metadata": map[string]any{"name": name, "namespace": "default"}}
	for k, v := range metadata {
		content["metadata"].(map[string]any)[k] = v
	}
	for k, v := range fields {
		content[k] = v
	}
	return apiserver.Object{Resource: configMaps, Namespace: "default", Name: name, Content: content}
}

func take(names []string, objects ...apiserver.Object) Snapshot {
	return Take(Source{Objects: objects, Names: strings.NewReplacer(names...)})
}

// fieldsOf returns the fields of the only thing in a snapshot.
func fieldsOf(t *testing.T, s Snapshot) map[string]string {
	t.Helper()
	if len(s) != 1 {
		t.Fatalf("%d things, want one: %v", len(s), s)
	}
	for _, fields := range s {
		return fields
	}
	return nil
}

// Two worlds do not differ in what the server and time put into an object.
func TestNormalization(t *testing.T) {
	tests := map[string]struct {
		metadata, fields map[string]any
		want             map[string]string // besides name and namespace
	}{
		"what the server sets": {
			metadata: map[string]any{
				"resourceVersion": "7", "uid": "u", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": int64(3), "selfLink": "/x",
				"managedFields": []any{map[string]any{"manager": "operator"}},
			},
		},
		"the order of finalizers": {
			metadata: map[string]any{"finalizers": []any{"b", "a"}},
			want:     map[string]string{".metadata.finalizers[0]": "a", ".metadata.finalizers[1]": "b"},
		},
		"the marks of the simulator": {
			metadata: map[string]any{"annotations": map[string]any{cluster.Foreign: "true"}, "labels": map[string]any{"app": "x", cluster.Marks + "a": "b"}},
			want:     map[string]string{".metadata.labels.app": "x"},
		},
		"copies of these marks": {
			fields: map[string]any{"spec": map[string]any{"template": map[string]any{"annotations": map[string]any{cluster.Marks + "touched": "true", "a": "b"}}}},
			want:   map[string]string{".spec.template.annotations.a": "b"},
		},
		"times": {
			fields: map[string]any{"data": map[string]any{"at": "2000-01-01T00:00:07Z", "day": "2000-01-01"}},
			want:   map[string]string{".data.at": "<time>", ".data.day": "2000-01-01"},
		},
		"UIDs": {
			fields: map[string]any{"data": map[string]any{"owner": "bucket-uid-1"}},
			want:   map[string]string{".data.owner": "bucket-uid(configmaps default/x)"},
		},
		"observed generations, by whether they are the present one": {
			metadata: map[string]any{"generation": int64(3)},
			fields: map[string]any{"status": map[string]any{
				"observedGeneration": int64(3), "conditions": []any{map[string]any{"type": "Ready", "observedGeneration": int64(1)}},
			}},
			want: map[string]string{
				".status.observedGeneration": "current", ".status.conditions[Ready].type": "Ready", ".status.conditions[Ready].observedGeneration": "stale",
			},
		},
		"lists, by type, name or key, or else by place": {
			fields: map[string]any{"spec": map[string]any{
				"containers": []any{map[string]any{"name": "main", "image": "nginx"}}, "tolerations": []any{map[string]any{"key": "gpu"}}, "args": []any{"a"},
			}},
			want: map[string]string{
				".spec.containers[main].name": "main", ".spec.containers[main].image": "nginx", ".spec.tolerations[gpu].key": "gpu", ".spec.args[0]": "a",
			},
		},
		"values that are not strings": {
			fields: map[string]any{"spec": map[string]any{"n": int64(3), "on": true, "none": nil, "list": []any{}, "map": map[string]any{}}},
			want:   map[string]string{".spec.n": "3", ".spec.on": "true", ".spec.none": "null", ".spec.list": "[]", ".spec.map": "{}"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			source := object("x", test.metadata, test.fields)
			before := runtime.DeepCopyJSON(source.Content)
			got := fieldsOf(t, take([]string{"uid-1", "uid(configmaps default/x)"}, source))
			want := map[string]string{".metadata.name": "x", ".metadata.namespace": "default"}
			for k, v := range test.want {
				want[k] = v
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, source.Content); diff != "" {
				t.Errorf("the snapshot has changed the object of the server:\n%s", diff)
			}
		})
	}
}

// Objects with generated names are compared by what else they have: which of them got which name
// differs between runs.
func TestGeneratedNames(t *testing.T) {
	pod := func(name, image string) apiserver.Object {
		return object(name, map[string]any{"generateName": "x-"}, map[string]any{"image": image})
	}
	one := take(nil, pod("x-aaa", "nginx:1"), pod("x-bbb", "nginx:2"), pod("x-ccc", "nginx:3"))
	other := take(nil, pod("x-ddd", "nginx:3"), pod("x-eee", "nginx:1"), pod("x-fff", "nginx:2"))
	if diff := cmp.Diff(one, other); diff != "" {
		t.Error(diff)
	}
	for name, image := range map[string]string{"x-*": "nginx:1", "x-* #2": "nginx:2", "x-* #3": "nginx:3"} {
		if got := one["configmaps default/"+name][".image"]; got != image {
			t.Errorf("%s has the image %q, want %q", name, got, image)
		}
	}
	if fewer := one.Diff(take(nil, pod("x-ddd", "nginx:1")), nil); len(fewer) != 2 {
		t.Errorf("two objects less are %d differences: %v", len(fewer), fewer)
	}
}

// Every cluster has some objects by itself; Kubernetes Events and Leases come and go.
func TestWhatIsLeftOut(t *testing.T) {
	cluster := func(r schema.GroupVersionResource, name string) apiserver.Object {
		o := object(name, nil, nil)
		o.Resource, o.Namespace = r, ""
		return o
	}
	got := take(nil,
		cluster(namespaces, "default"), cluster(namespaces, "kube-system"), cluster(namespaces, "mine"),
		cluster(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "widgets"),
		cluster(schema.GroupVersionResource{Version: "v1", Resource: "events"}, "e"),
		cluster(schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, "l"),
	)
	if _, ok := got["namespaces /mine"]; !ok || len(got) != 1 {
		t.Errorf("got %v, want the namespace mine only", got)
	}
}

// Normalize sees a copy of each object, with the name that is compared, and may leave it out.
func TestNormalizeOfTheWorkload(t *testing.T) {
	content := object("x-1", map[string]any{"generateName": "x-"}, map[string]any{"data": map[string]any{"a": "1", "b": "2"}})
	got := Take(Source{Objects: []apiserver.Object{content, object("cache", nil, nil)}, Names: strings.NewReplacer(), Normalize: func(o *Object) bool {
		if o.Name == "x-*" {
			delete(o.Content["data"].(map[string]any), "b")
		}
		return o.Name != "cache" && o.Resource == configMaps && o.Namespace == "default"
	}})
	fields := fieldsOf(t, got)
	if fields[".data.a"] != "1" || fields[".data.b"] != "" {
		t.Errorf("got %v, want only a", fields)
	}
	if content.Content["data"].(map[string]any)["b"] != "2" {
		t.Error("Normalize has changed the object of the server")
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

func TestDiff(t *testing.T) {
	want := Snapshot{"configmaps a": {".data.x": "1", ".data.y": "1"}, "configmaps b": {}, "configmaps c": {".data.z": "1"}}
	got := Snapshot{"configmaps a": {".data.x": "2", ".data.y": "1", ".data.w": "3"}, "configmaps c": {}, "configmaps d": {}}
	all := []oracle.Difference{
		{Thing: "configmaps a", Path: ".data.w", Got: "3"},
		{Thing: "configmaps a", Path: ".data.x", Want: "1", Got: "2"},
		{Thing: "configmaps b", Want: "there"},
		{Thing: "configmaps c", Path: ".data.z", Want: "1"},
		{Thing: "configmaps d", Got: "there"},
	}
	if diff := cmp.Diff(all, want.Diff(got, nil)); diff != "" {
		t.Error(diff)
	}
	mask := map[string]bool{MaskKey(all[1]): true, MaskKey(all[2]): true}
	if diff := cmp.Diff([]oracle.Difference{all[0], all[3], all[4]}, want.Diff(got, mask)); diff != "" {
		t.Errorf("with a mask:\n%s", diff)
	}
	if list := want.Diff(want, nil); len(list) > 0 {
		t.Errorf("a world differs from itself: %v", list)
	}
}

func TestDiffConcealsSecrets(t *testing.T) {
	want := Snapshot{"secrets default/x": {".data.a": "cGFzc3dvcmQ=", ".data.gone": "Z29uZQ==", ".data.same": "x", ".type": "Opaque"}, "configmaps default/x": {".data.a": "1"}}
	got := Snapshot{"secrets default/x": {".data.a": "b3RoZXI=", ".data.same": "x", ".type": "Other"}, "configmaps default/x": {".data.a": "2"}}
	var text []string
	for _, d := range want.Diff(got, nil) {
		text = append(text, d.String())
	}
	expected := []string{
		`~ configmaps default/x data.a: got "2", want "1"`,
		`~ secrets default/x data.a: got <secret HASH>, want <secret HASH>`,
		`~ secrets default/x data.gone: got nothing, want <secret HASH>`,
		`~ secrets default/x type: got "Other", want "Opaque"`,
	}
	hash := regexp.MustCompile(`<secret [0-9a-f]{4}>`)
	all := hash.ReplaceAllString(strings.Join(text, "\n"), "<secret HASH>")
	if diff := cmp.Diff(strings.Join(expected, "\n"), all); diff != "" {
		t.Error(diff)
	}
	if hashes := hash.FindAllString(text[1], -1); len(hashes) != 2 || hashes[0] == hashes[1] {
		t.Errorf("the two values are the same: %s", text[1])
	}
}
