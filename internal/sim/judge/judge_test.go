// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// trial is what a judge is shown in a test.
type trial struct {
	*Judge
	systems map[string]external.System
}

// try shows a judge something, and returns what was violated, a line each.
func try(t *testing.T, o Options, show func(trial)) []string {
	t.Helper()
	var noticed []string
	o.Noticed = func(name oracle.Name, text string) int {
		noticed = append(noticed, string(name)+": "+text)
		return 0
	}
	if o.Systems == nil {
		o.Systems = map[string]external.System{}
	}
	show(trial{New(o), o.Systems})
	return noticed
}

// object is the content of a ConfigMap named x.
func object(fields map[string]any) map[string]any {
	content := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "default"}}
	for k, v := range fields {
		if k == "metadata" {
			for key, value := range v.(map[string]any) {
				content["metadata"].(map[string]any)[key] = value
			}
			continue
		}
		content[k] = v
	}
	return content
}

// The creation and the deletion of a ConfigMap named x with the UID 1.
func (tr trial) created(actor string, content map[string]any) {
	tr.change("ADDED", actor, "create", nil, content)
}

func (tr trial) deleted(actor string, content map[string]any) {
	tr.change("DELETED", actor, "delete", content, nil)
}

func (tr trial) change(kind, actor, verb string, before, after map[string]any) {
	tr.Changed(apiserver.Change{
		Type: kind, Actor: actor, Verb: verb, Resource: configMaps, Namespace: "default", Name: "x", UID: "1", Old: before, New: after,
	})
}

// system is an external system with some resources.
type system struct {
	resources []external.Resource
	created   int // for each object
}

func (s system) Inventory() []external.Resource     { return s.resources }
func (s system) Created(types.UID) int              { return s.created }
func (system) MintsIDs() bool                       { return false }
func (system) Drift(types.UID) (id string, ok bool) { return "", false }

func buckets(created int, resources ...external.Resource) map[string]external.System {
	return map[string]external.System{"buckets": system{resources, created}}
}

func withFault(kind fault.Kind) fault.Plan {
	return fault.Plan{Faults: []fault.Fault{{Kind: kind, At: 1}}}
}

// Every oracle that is registered has a name of its own, and watches something.
func TestEveryOracleWatches(t *testing.T) {
	seen := map[oracle.Name]bool{}
	for _, r := range oracles() {
		if seen[r.name] {
			t.Errorf("%s is registered twice", r.name)
		}
		seen[r.name] = true
		switch r.oracle.(type) {
		case onWrite, afterWrite, onChange, onCall, afterCall, onEvent, onRequest, onStuck, whenIdle, atEnd:
		default:
			t.Errorf("%s watches nothing", r.name)
		}
	}
}

// A violation is recorded once, and not when its oracle is switched off.
func TestReport(t *testing.T) {
	got := try(t, Options{Without: map[oracle.Name]string{oracle.SameEnd: "a reason"}}, func(tr trial) {
		tr.Report(oracle.NoPanic, "oh\nand where")
		tr.Report(oracle.NoPanic, "oh\nand where")
		tr.Report(oracle.NoPanic, "other")
		tr.Report(oracle.SameEnd, "off")
		if n := len(tr.Violations()); n != 2 {
			t.Errorf("%d violations", n)
		}
	})
	if diff := cmp.Diff([]string{"no-panic: oh", "no-panic: other"}, got); diff != "" {
		t.Error(diff)
	}
}
