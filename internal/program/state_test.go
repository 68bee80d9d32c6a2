// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/trial"
	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

func mapOf(name, generateName, uid string, more map[string]any) apiserver.Object {
	metadata := map[string]any{"name": name, "namespace": "default", "uid": uid, "resourceVersion": uid}
	if generateName != "" {
		metadata["generateName"] = generateName
	}
	content := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
	for field, value := range more {
		content[field] = value
	}
	return apiserver.Object{Resource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: "default", Name: name, Content: content}
}

// stateOf returns the state of objects that the operator has written.
func stateOf(objects ...apiserver.Object) state {
	h := newHistory(newTrace())
	for _, o := range objects {
		actor := "operator"
		if o.Name == "played" {
			actor = "node-player"
		}
		h.changed(apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content, Actor: actor})
	}
	return h.of(objects)
}

// What differs between two runs by chance is no difference: generated names, where they are
// referred to, UIDs, versions, times, what only other controllers write, and what another client
// has added.
func TestDifferencesOfRuns(t *testing.T) {
	t.Parallel()
	data := func(pairs map[string]any) map[string]any { return map[string]any{"data": pairs} }
	want := stateOf(
		mapOf("a", "", "1", data(map[string]any{"refers": "job-x7", "uid": "3", "at": "2026-01-01T00:00:00Z"})),
		mapOf("job-x7", "job-", "3", data(map[string]any{"of": "first"})),
		mapOf("job-b2", "job-", "4", data(map[string]any{"of": "second"})),
		mapOf("played", "", "5", nil),
	)
	same := stateOf(
		mapOf("a", "", "10", data(map[string]any{"refers": "job-z9", "uid": "13", "at": "2026-01-01T00:00:09Z"})),
		mapOf("job-a1", "job-", "14", data(map[string]any{"of": "second"})), // in the order of the names, as in a cluster
		mapOf("job-z9", "job-", "13", data(map[string]any{"of": "first"})),
	)
	if found := same.differences(want, nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	other := stateOf(
		mapOf("a", "", "20", data(map[string]any{"refers": "job-a1", "uid": "21", "at": "never"})),
		mapOf("job-a1", "job-", "21", data(map[string]any{"of": "first"})),
		mapOf("new", "", "22", nil),
	)
	found := other.differences(want, map[string]bool{"configmaps default/a data[at]": true, "configmaps default/a data.at": true})
	if diff := cmp.Diff([]oracle.Difference{
		{Thing: "configmaps default/job-*2", Want: "there"},
		{Thing: "configmaps default/new", Got: "there"},
	}, found); diff != "" {
		t.Error(diff)
	}
	touchedBy := mapOf("a", "", "1", nil)
	touchedBy.Content["metadata"].(map[string]any)["annotations"] = map[string]any{touched: "true"} //nolint:errcheck // made above
	template := func(metadata map[string]any) any {
		return map[string]any{"templates": []any{map[string]any{"metadata": metadata}}}
	}
	touchedBy.Content["spec"] = template(map[string]any{"name": "t", "annotations": map[string]any{touched: "true"}}) // as the operator passes it on
	plain := mapOf("a", "", "2", nil)
	plain.Content["spec"] = template(map[string]any{"name": "t"})
	if found := stateOf(touchedBy).differences(stateOf(plain), nil); len(found) > 0 {
		t.Errorf("got %v after a touch, want none", found)
	}
}

// The values of Secrets are in no report.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	secret := func(value string) state {
		return state{"secrets default/s": trial.Timeless(map[string]any{"metadata": map[string]any{"name": "s"}, "data": map[string]any{"password": value}})}
	}
	found := secret("Y2FuYXJ5").differences(secret("b3RoZXI="), nil)
	if len(found) != 1 || cmp.Diff(found[0].Want, found[0].Got) == "" {
		t.Fatalf("got %v, want one difference", found)
	}
	for _, text := range []string{found[0].Want, found[0].Got} {
		if len(text) != len("<secret 01234567>") {
			t.Errorf("got %q", text)
		}
	}
}

// An object of another controller that the operator has written in one of the runs only.
func TestWrittenInOneRun(t *testing.T) {
	t.Parallel()
	played := func(writer string, label string) state {
		h := newHistory(newTrace())
		o := mapOf("played", "", "5", map[string]any{"data": map[string]any{"label": label}})
		c := apiserver.Change{Type: "ADDED", Resource: o.Resource, Namespace: o.Namespace, Name: o.Name, New: o.Content, Actor: "node-player"}
		h.changed(c)
		if writer != "" {
			c.Type, c.Old, c.Actor = "MODIFIED", o.Content, writer
			h.changed(c)
		}
		return h.of([]apiserver.Object{o})
	}
	if found := played("operator", "new").differences(played("", "old"), nil); len(found) > 0 {
		t.Errorf("the operator has changed what it does not change without faults, as by deleting it, and it came again: got %v", found)
	}
	if found := played("", "old").differences(played("operator", "new"), nil); len(found) != 1 || found[0].Path != "data.label" {
		t.Errorf("the operator has not written it: got %v, want a difference in data.label", found)
	}
	if found := played("", "new").differences(played("operator", "new"), nil); len(found) > 0 {
		t.Errorf("it is as if the operator had written it: got %v", found)
	}
}

// Addresses and ports of Services are those that were free.
func TestAllocatedByTheServer(t *testing.T) {
	t.Parallel()
	service := func(address string, port int64) state {
		return stateOf(apiserver.Object{
			Resource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Namespace: "default", Name: "s",
			Content: map[string]any{"metadata": map[string]any{"name": "s", "namespace": "default", "uid": "1"}, "spec": map[string]any{
				"clusterIP": address, "clusterIPs": []any{address}, "ports": []any{map[string]any{"port": int64(80), "nodePort": port}},
			}},
		})
	}
	if found := service("10.0.0.3", 30001).differences(service("10.0.0.4", 30002), nil); len(found) > 0 {
		t.Errorf("got %v, want none", found)
	}
	if found := service("None", 0).differences(service("10.0.0.4", 0), nil); len(found) == 0 {
		t.Error("a Service that becomes headless is as before")
	}
}
