// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/snapshot"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// minting is a system that makes up the ids of its resources.
type minting struct{ system }

func (minting) MintsIDs() bool { return true }

// What the world has minted is named by what it was minted for, so that worlds can be compared.
func TestNames(t *testing.T) {
	minted := external.Resource{ID: "id-7", Owner: "1"}
	systems := map[string]external.System{
		"minted": minting{system{resources: []external.Resource{minted}}}, "named": system{resources: []external.Resource{{ID: "chosen"}}},
	}
	try(t, Options{Systems: systems}, func(tr trial) {
		tr.created("user", object(nil))
		tr.Changed(apiserver.Change{
			Type: "ADDED", Actor: "operator", Resource: configMaps, Namespace: "default", Name: "x-8k2vz", UID: "2",
			New: map[string]any{"metadata": map[string]any{"name": "x-8k2vz", "generateName": "x-", "namespace": "default"}},
		})
		tr.Changed(apiserver.Change{
			Type: "ADDED", Actor: "user", Resource: configMaps, Namespace: "default", Name: "y", UID: "5f-4a",
			New: map[string]any{"metadata": map[string]any{"name": "y", "namespace": "default"}},
		})
		for _, named := range []struct{ kind, name, generateName string }{{"replicasets", "web-5db79fd868", "web-"}, {"pods", "web-5db79fd868-wzctx", "web-5db79fd868-"}} {
			tr.Changed(apiserver.Change{
				Type: "ADDED", Actor: "server", Resource: appsv1.SchemeGroupVersion.WithResource(named.kind), Namespace: "default", Name: named.name, UID: types.UID("3-" + named.kind),
				New: map[string]any{"metadata": map[string]any{"name": named.name, "generateName": named.generateName, "namespace": "default"}},
			})
		}
		names := tr.Names()
		for text, want := range map[string]string{
			"of web-5db79fd868-wzctx": "of web-<hash>-*",
			"owner 1":                 "owner uid(configmaps default/x)",
			"owner 2":                 "owner uid(configmaps default/x-*)",
			"child-x-8k2vz":           "child-x-*",
			"bucket-5f4a":             "bucket-uid(configmaps default/y)",
			"id-7":                    "minted-of-configmaps default/x",
			"chosen":                  "chosen",
		} {
			if got := names.Replace(text); got != want {
				t.Errorf("%s is called %q, want %q", text, got, want)
			}
		}
		tr.deleted("user", object(nil))
		if got, want := tr.Names().Replace("1"), "former uid(configmaps default/x)"; got != want {
			t.Errorf("an object that is gone is called %q, want %q", got, want)
		}
	})
}

// A reference has what the operator did and made, and nothing of what others did.
func TestReference(t *testing.T) {
	checkpoints := []snapshot.Snapshot{{"configmaps default/x": {".status.conditions[Ready].status": "True"}, "secrets default/s": {".data.a": "1"}}}
	try(t, Options{Systems: buckets(3)}, func(tr trial) {
		tr.created("user", object(nil))
		tr.created("operator", object(nil))
		tr.deleted("operator-2", object(nil))
		tr.deleted("server", object(nil))
		r := tr.Reference(checkpoints, 42)
		want := &Reference{
			Checkpoints: checkpoints, Mask: map[string]bool{}, Requests: 42,
			created: map[string]int{"configmaps default/x": 1}, deleted: map[string]int{"configmaps default/x": 1},
			externals: map[string]int{"buckets configmaps default/x": 3}, conditions: map[string]bool{"configmaps default/x": true},
			periodic: map[string]bool{}, said: map[string]bool{}, reconciled: map[string]bool{},
			slots: map[string]*slots{
				"created configmaps default/x": {last: r.slots["created configmaps default/x"].last}, "deleted configmaps default/x": {last: r.slots["deleted configmaps default/x"].last},
			},
		}
		if diff := cmp.Diff(want, r, cmp.AllowUnexported(Reference{}, slots{})); diff != "" {
			t.Error(diff)
		}
	})
}

// What the operator creates without the fault is its own, also where a fault has taken the place, and
// nothing else is.
func TestMade(t *testing.T) {
	without := &Reference{created: map[string]int{"configmaps default/x": 1}}
	for name, test := range map[string]struct {
		reference *Reference
		actor     string
		want      bool
	}{
		"the operator's, without faults":           {nil, "operator", true},
		"a user's":                                 {nil, "user", false},
		"an orphan in the place of the operator's": {without, "other", true},
		"the operator's in the place of a user's":  {&Reference{}, "operator", false},
	} {
		try(t, Options{Reference: test.reference, Without: map[oracle.Name]string{oracle.SameWork: "it is tested alone"}}, func(tr trial) {
			tr.created(test.actor, object(nil))
			if got := tr.Made("1"); got != test.want {
				t.Errorf("%s: got %t", name, got)
			}
		})
	}
}

// Fields that differ between runs without faults are masked, things that are missing in one are
// not: that is a difference that the user has to know of.
func TestLearn(t *testing.T) {
	world := func(a, b string) snapshot.Snapshot {
		return snapshot.Snapshot{"configmaps default/x": {".data.a": a, ".data.b": b}}
	}
	r := &Reference{Checkpoints: []snapshot.Snapshot{world("1", "1"), world("1", "1")}, Mask: map[string]bool{}}
	r.Learn([]snapshot.Snapshot{world("1", "1"), world("2", "1")})
	r.Learn([]snapshot.Snapshot{{}})
	if diff := cmp.Diff(map[string]bool{"configmaps default/x .data.a": true}, r.Mask); diff != "" {
		t.Error(diff)
	}
	got := try(t, Options{Reference: r}, func(tr trial) { tr.End(End{Checkpoints: []snapshot.Snapshot{world("7", "1"), world("8", "1")}}) })
	if len(got) > 0 {
		t.Errorf("a field that was learned to differ is accused: %q", got)
	}
}

// A failure that a run without faults ends with does not become right by that.
func TestLearnNoFailures(t *testing.T) {
	world := func(kind, status string) snapshot.Snapshot {
		return snapshot.Snapshot{"widgets default/x": {conditionsPath + kind + "].status": status}}
	}
	for _, test := range []struct {
		kind, want, got string
		accused         bool
	}{
		{"Degraded", "", "True", true},
		{"ReconcileFailed", "False", "True", true},
		{"Degraded", "", "False", false},
		{"Degraded", "True", "False", false},
		{"Progressing", "False", "True", false},
		{"Ready", "True", "False", false},
	} {
		r := &Reference{Checkpoints: []snapshot.Snapshot{world(test.kind, test.want)}, Mask: map[string]bool{}}
		other := []snapshot.Snapshot{world(test.kind, test.got)}
		r.Learn(other)
		got := try(t, Options{Reference: r}, func(tr trial) { tr.End(End{Checkpoints: other}) })
		if len(got) > 0 != test.accused {
			t.Errorf("%s=%s instead of %q: %q", test.kind, test.got, test.want, got)
		}
	}
}

// A violation has the checkpoint, the differences and the place in the trace that reports show.
func TestViolation(t *testing.T) {
	before, after := snapshot.Snapshot{}, snapshot.Snapshot{"configmaps default/x": {}}
	j := New(Options{
		Reference: &Reference{Checkpoints: []snapshot.Snapshot{before, after}}, Plan: withFault(fault.CrashAfterWrite),
		Noticed: func(oracle.Name, string) int { return 17 },
	})
	j.End(End{Checkpoints: []snapshot.Snapshot{before, before}})
	want := []oracle.Violation{{
		Oracle: oracle.SameEnd, Text: "at checkpoint 2 of 2, the world is not what it is without the fault:\n  - configmaps default/x is missing",
		Checkpoint: 2, Differences: []oracle.Difference{{Thing: "configmaps default/x", Want: "there"}}, Entry: 17,
	}}
	if diff := cmp.Diff(want, j.Violations()); diff != "" {
		t.Error(diff)
	}
}

// Kubernetes Events are judged beside the driver, in the goroutines of the operator.
func TestEventsAreJudgedAnywhere(t *testing.T) {
	try(t, Options{}, func(tr trial) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 100 {
				tr.Event(&apiserver.Request{Verb: "create", Resource: configMaps, Body: []byte("{}")})
			}
		}()
		for i := range 100 {
			tr.Request()
			tr.Changed(apiserver.Change{Type: "ADDED", Actor: "user", Resource: configMaps, Name: "x", UID: types.UID(rune('a' + i)), New: object(nil)})
			tr.Prove([]string{"", "a resync"}[i%2])
		}
		<-done
		if len(tr.Violations()) > 1 {
			t.Errorf("%d violations, want at most the first of the idle operator", len(tr.Violations()))
		}
	})
}
