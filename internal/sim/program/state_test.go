// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

func mapOf(name, generateName, uid string, more map[string]any) apiserver.Object {
	if len(uid) < 36 {
		uid = "0a0a0a0a-0000-4000-8000-" + strings.Repeat("0", 12-len(uid)) + uid
	}
	metadata := map[string]any{"name": name, "namespace": "default", "uid": uid, "resourceVersion": "7"}
	if generateName != "" {
		metadata["generateName"] = generateName
	}
	content := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
	for field, value := range more {
		content[field] = value
	}
	return apiserver.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default", Name: name, Content: content}
}

// An era is what has happened in a cluster.
type era struct {
	*history
	judge *judge.Judge
}

func newEra() *era {
	e := &era{judge: judge.New(judge.Options{Now: time.Now})}
	e.history = newHistory(newTrace(), newClock())
	return e
}

func (e *era) changed(c apiserver.Change) {
	if c.UID == "" && c.New != nil {
		c.UID = (&unstructured.Unstructured{Object: c.New}).GetUID()
	}
	e.history.changed(c)
	e.judge.Changed(c)
}

// of returns a picture of the cluster.
func (e *era) of(objects []apiserver.Object) snapshot.Snapshot {
	return snapshot.Take(snapshot.Source{Objects: objects, Names: e.judge.Names(), Made: e.judge.Made, IsVersion: e.judge.IsVersion, Compared: e.isCompared})
}

// stateOf returns a picture of objects that the operator has written.
func stateOf(objects ...apiserver.Object) snapshot.Snapshot {
	e := newEra()
	for _, o := range objects {
		actor := "operator"
		switch {
		case o.Name == "played":
			actor = "node-player"
		case o.Resource.Resource == "shops":
			actor = trial.UserActor
		}
		e.changed(apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content, Actor: actor})
	}
	return e.of(objects)
}

// What differs between two runs by chance is no difference: generated names, where they are
// referred to, UIDs, versions, times, what only other controllers write, and what another client
// has added.
func TestDifferencesOfRuns(t *testing.T) {
	t.Parallel()
	data := func(pairs map[string]any) map[string]any { return map[string]any{"data": pairs} }
	want := stateOf(
		mapOf("a", "", "1", data(map[string]any{"refers": "job-x7", "uid": "0a0a0a0a-0000-4000-8000-000000000003", "at": "2026-01-01T00:00:00Z"})),
		mapOf("job-x7", "job-", "3", data(map[string]any{"of": "first"})),
		mapOf("job-b2", "job-", "4", data(map[string]any{"of": "second"})),
		mapOf("played", "", "5", nil),
	)
	same := stateOf(
		mapOf("a", "", "10", data(map[string]any{"refers": "job-z9", "uid": "0a0a0a0a-0000-4000-8000-000000000013", "at": "2026-01-01T00:00:09Z"})),
		mapOf("job-a1", "job-", "14", data(map[string]any{"of": "second"})), // in the order of the names, as in a cluster
		mapOf("job-z9", "job-", "13", data(map[string]any{"of": "first"})),
	)
	if found := want.Diff(same, nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	other := stateOf(
		mapOf("a", "", "20", data(map[string]any{"refers": "job-a1", "uid": "0a0a0a0a-0000-4000-8000-000000000021", "at": "never"})),
		mapOf("job-a1", "job-", "21", data(map[string]any{"of": "first"})),
		mapOf("new", "", "22", nil),
	)
	found := want.Diff(other, map[string]bool{"configmaps default/a .data.at": true})
	if diff := cmp.Diff([]oracle.Difference{
		{Thing: "configmaps default/job-* #2", Want: "there"},
		{Thing: "configmaps default/new", Got: "there"},
	}, found); diff != "" {
		t.Error(diff)
	}
	touchedBy := mapOf("a", "", "1", nil)
	touchedBy.Content["metadata"].(map[string]any)["annotations"] = map[string]any{cluster.Marks + "touched": "true"} //nolint:errcheck // made above
	template := func(metadata map[string]any) any {
		return map[string]any{"templates": []any{map[string]any{"metadata": metadata}}}
	}
	touchedBy.Content["spec"] = template(map[string]any{"name": "t", "annotations": map[string]any{cluster.Marks + "touched": "true"}}) // as the operator passes it on
	plain := mapOf("a", "", "2", nil)
	plain.Content["spec"] = template(map[string]any{"name": "t"})
	if found := stateOf(plain).Diff(stateOf(touchedBy), nil); len(found) > 0 {
		t.Errorf("got %v after a touch, want none", found)
	}
}

// The values of Secrets are in no report.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	secret := func(value string) snapshot.Snapshot {
		o := mapOf("s", "", "1", map[string]any{"data": map[string]any{"password": value}})
		o.Resource.Resource = "secrets"
		return stateOf(o)
	}
	found := secret("b3RoZXI=").Diff(secret("Y2FuYXJ5"), nil)
	if len(found) != 1 || cmp.Diff(found[0].Want, found[0].Got) == "" {
		t.Fatalf("got %v, want one difference", found)
	}
	for _, text := range []string{found[0].Want, found[0].Got} {
		if len(text) < len("<secret 0123>") || strings.Contains(text, "Y2Fu") || strings.Contains(text, "b3Ro") {
			t.Errorf("got %q", text)
		}
	}
}

// An object of another controller that the operator has written in one of the runs only.
func TestWrittenInOneRun(t *testing.T) {
	t.Parallel()
	played := func(writer string, label string) snapshot.Snapshot {
		h := newEra()
		o := mapOf("played", "", "5", map[string]any{"data": map[string]any{"label": label}})
		c := apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content, Actor: "node-player"}
		h.changed(c)
		if writer != "" {
			c.Type, c.Old, c.Actor = "MODIFIED", o.Content, writer
			h.changed(c)
		}
		return h.of([]apiserver.Object{o})
	}
	if found := played("", "old").Diff(played("operator", "new"), nil); len(found) > 0 {
		t.Errorf("the operator has changed what it does not change without faults, as by deleting it, and it came again: got %v", found)
	}
	if found := played("operator", "new").Diff(played("", "old"), nil); len(found) != 1 || found[0].Path != ".data.label" {
		t.Errorf("the operator has not written it: got %v, want a difference in data.label", found)
	}
	if found := played("operator", "new").Diff(played("", "new"), nil); len(found) > 0 {
		t.Errorf("it is as if the operator had written it: got %v", found)
	}
}

// Addresses and ports of Services are those that were free.
func TestAllocatedByTheServer(t *testing.T) {
	t.Parallel()
	service := func(address string, port int64) snapshot.Snapshot {
		return stateOf(apiserver.Object{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Namespace: "default", Name: "s",
			Content: map[string]any{"metadata": map[string]any{"name": "s", "namespace": "default", "uid": "1"}, "spec": map[string]any{
				"clusterIP": address, "clusterIPs": []any{address}, "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
			}},
		})
	}
	if found := service("10.0.0.4", 30002).Diff(service("10.0.0.3", 30001), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := service("10.0.0.4", 0).Diff(service("None", 0), nil); len(found) == 0 {
		t.Error("a Service that becomes headless is as before")
	}
}

// What an operator has copied of resource versions is no difference, and the version of a program
// is one, although a resource version may be the same number.
func TestCopiedVersions(t *testing.T) {
	t.Parallel()
	with := func(version string, field string) snapshot.Snapshot {
		h := newEra()
		for v := range uint64(30) {
			h.changed(apiserver.Change{Type: "MODIFIED", Resource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Name: "p", New: mapOf("p", "", "2", nil).Content, ResourceVersion: v, Actor: "node-player"})
		}
		o := mapOf("a", "", "1", map[string]any{"data": map[string]any{field: version}})
		h.changed(apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content, Actor: "operator", ResourceVersion: 30})
		return h.of([]apiserver.Object{o})
	}
	if found := with("19", "copied-from-version").Diff(with("12", "copied-from-version"), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	for _, field := range []string{"version", "postgresVersion"} {
		if found := with("15", field).Diff(with("14", field), nil); len(found) != 1 {
			t.Errorf("%s: got %v, want a difference", field, found)
		}
	}
	if found := with("119", "resourceVersion").Diff(with("12", "resourceVersion"), nil); len(found) != 1 {
		t.Errorf("no object ever had that version: got %v, want a difference", found)
	}
}

// A custom resource says the same without its zeros, which an operator whose fields are omitempty
// loses.
func TestZerosOfCustomResources(t *testing.T) {
	t.Parallel()
	of := func(group string, spec map[string]any) snapshot.Snapshot {
		return stateOf(apiserver.Object{
			Resource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "shops"}, Namespace: "default", Name: "a",
			Content: map[string]any{"metadata": map[string]any{"name": "a", "namespace": "default", "uid": "uid-of-a"}, "spec": spec},
		})
	}
	zeros := map[string]any{"size": int64(0), "paused": false, "note": "", "tags": []any{}, "image": "x"}
	if found := of("example.com", map[string]any{"image": "x"}).Diff(of("example.com", zeros), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := of("apps", map[string]any{"image": "x"}).Diff(of("apps", zeros), nil); len(found) == 0 {
		t.Error("a kind of Kubernetes: got none, want differences")
	}
	if found := of("example.com", map[string]any{"size": int64(1)}).Diff(of("example.com", zeros), nil); len(found) != 2 {
		t.Errorf("got %v, want the size and the image", found)
	}
	written := map[string]any{"image": "x", "resources": map[string]any{}, "timeout": "1h0m0s", "memory": "1Gi", "cpu": "1"}
	asked := map[string]any{"image": "x", "timeout": "60m", "memory": "1024Mi", "cpu": int64(1)}
	if found := of("example.com", asked).Diff(of("example.com", written), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := of("apps", asked).Diff(of("apps", written), nil); len(found) != 2 {
		t.Errorf("a kind of Kubernetes: got %v, want differences in the duration and the quantity", found)
	}
}

// A workload that was created again counts its revisions anew, and its template is compared.
func TestRevisionsAreCountedAnew(t *testing.T) {
	t.Parallel()
	deployment := func(revision, image string) snapshot.Snapshot {
		return stateOf(apiserver.Object{
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Namespace: "default", Name: "d",
			Content: map[string]any{
				"metadata": map[string]any{"name": "d", "namespace": "default", "uid": "1", "annotations": map[string]any{"deployment.kubernetes.io/revision": revision}},
				"spec":     map[string]any{"image": image},
			},
		})
	}
	if found := deployment("2", "a").Diff(deployment("1", "a"), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := deployment("1", "b").Diff(deployment("1", "a"), nil); len(found) != 1 {
		t.Errorf("got %v, want the image", found)
	}
}

// An object that is named after the UID of another one has the same name in each run.
func TestNamedAfterAUID(t *testing.T) {
	t.Parallel()
	const one, other = "0a0a0a0a-0000-4000-8000-000000000001", "0a0a0a0a-0000-4000-8000-000000000002"
	run := func(uid string) snapshot.Snapshot {
		return stateOf(mapOf("owner", "", uid, nil), mapOf("bucket-"+uid, "", "7", nil))
	}
	if found := run(other).Diff(run(one), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := run(other).Diff(stateOf(mapOf("owner", "", one, nil)), nil); len(found) != 1 || found[0].Got != "" {
		t.Errorf("got %v, want the bucket to be missing", found)
	}
}

// A user deletes one object, and no other one of its name.
func TestTargetNames(t *testing.T) {
	t.Parallel()
	shops := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "shops"}
	u := func(namespace, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Shop", "metadata": map[string]any{"name": name, "namespace": namespace},
		}}
	}
	for _, called := range []string{"shop", "shops", "shops.example.com", "shop.example.com"} {
		target := Target{Called: called, Namespace: "a", Name: "x"}
		if !target.names(shops, u("a", "x")) || target.names(shops, u("b", "x")) || target.names(shops, u("a", "y")) {
			t.Errorf("%q names another one", called)
		}
	}
	kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"}
	if by := (Target{Kind: kind, Namespace: "a", Name: "x"}); !by.names(shops, u("a", "x")) || by.names(shops, u("b", "x")) {
		t.Error("by its kind, it names another one")
	}
	if (Target{Called: "secret", Namespace: "a", Name: "x"}).names(shops, u("a", "x")) {
		t.Error("it names one of another kind")
	}
}
