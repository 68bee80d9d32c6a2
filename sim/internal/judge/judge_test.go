// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/fault"
	"github.com/ctrlkit/ctrlkit/sim/internal/external"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// trial is what a judge is shown in a test.
type trial struct {
	*Judge
	systems map[string]external.System
}

// try shows a judge something, and returns what was violated, a line each. Each oracle is tested
// with right behavior, which must not be accused, and with wrong behavior.
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

// check is a case of a test of an oracle.
type check struct {
	options Options
	show    func(trial)
	want    []string // nil: nothing is violated
}

// checks are the cases of all oracles that watch runs. Those of right behavior begin with "right:",
// those of wrong behavior with "wrong:".
var checks = map[oracle.Name]func(*testing.T) map[string]check{
	oracle.BoundedRequests:    boundedRequestsChecks,
	oracle.CacheUntouched:     cacheUntouchedChecks,
	oracle.ConditionsStay:     conditionsStayChecks,
	oracle.EndsWell:           endsWellChecks,
	oracle.FinalizerFirst:     finalizerFirstChecks,
	oracle.ForeignUntouched:   foreignUntouchedChecks,
	oracle.NoLeak:             noLeakChecks,
	oracle.NoLateFinalizer:    noLateFinalizerChecks,
	oracle.NoNoopWrites:       noNoopWritesChecks,
	oracle.NoLostWakeUp:       noLostWakeUpChecks,
	oracle.NoOrphans:          noOrphansChecks,
	oracle.NoPanic:            noPanicChecks,
	oracle.NoSecret:           noSecretChecks,
	oracle.ObservedGeneration: observedGenerationChecks,
	oracle.OneExternal:        oneExternalChecks,
	oracle.ReadyWhenDone:      readyWhenDoneChecks,
	oracle.SameEnd:            sameEndChecks,
	oracle.SameHistory:        sameHistoryChecks,
	oracle.SameWork:           sameWorkChecks,
	oracle.SaysWhy:            saysWhyChecks,
	oracle.SilentWhenIdle:     silentWhenIdleChecks,
	oracle.TransitionTime:     transitionTimeChecks,
}

func TestOracles(t *testing.T) {
	for name, of := range checks {
		t.Run(string(name), func(t *testing.T) {
			for text, c := range of(t) {
				t.Run(text, func(t *testing.T) {
					if diff := cmp.Diff(c.want, try(t, c.options, c.show)); diff != "" {
						t.Error(diff)
					}
				})
			}
		})
	}
}

// A case of an oracle that accuses something accuses it in the name of that oracle, and each oracle
// has cases of both kinds: without a right one it could accuse everything, without a wrong one
// nothing.
func TestEveryOracleIsTested(t *testing.T) {
	for _, r := range oracles() {
		of, ok := checks[r.name]
		if !ok {
			t.Errorf("%s has no cases in checks", r.name)
			continue
		}
		right, wrong := 0, 0
		for text, c := range of(t) {
			switch {
			case strings.HasPrefix(text, "right: ") && len(c.want) == 0:
				right++
			case strings.HasPrefix(text, "wrong: ") && len(c.want) > 0 && strings.HasPrefix(c.want[0], string(r.name)+": "):
				wrong++
			default:
				t.Errorf("%s: the case %q does not begin with right or wrong, or wants something else: %q", r.name, text, c.want)
			}
		}
		if right == 0 || wrong == 0 {
			t.Errorf("%s has %d right cases and %d wrong ones, want both", r.name, right, wrong)
		}
	}
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

// The changes of a ConfigMap named x with the UID 1.
func (tr trial) created(actor string, content map[string]any) {
	tr.change("ADDED", actor, "create", nil, content)
}

func (tr trial) updated(actor string, before, after map[string]any) {
	tr.change("MODIFIED", actor, "update", before, after)
}

func (tr trial) deleted(actor string, content map[string]any) {
	tr.change("DELETED", actor, "delete", content, nil)
}

func (tr trial) change(kind, actor, verb string, before, after map[string]any) {
	tr.Changed(apiserver.Change{
		Type: kind, Actor: actor, Verb: verb, Resource: configMaps, Namespace: "default", Name: "x", UID: "1", Old: before, New: after,
	})
}

// write shows a write to the ConfigMap, with the code of its answer.
func (tr trial) write(verb string, code int) {
	r := &apiserver.Request{Verb: verb, Resource: configMaps, Namespace: "default", Name: "x", Actor: "operator"}
	tr.BeforeWrite(r)
	tr.AfterWrite(r, &apiserver.Response{Code: code})
}

// changes shows a write to the ConfigMap that changes it.
func (tr trial) changes(verb string) {
	r := &apiserver.Request{Verb: verb, Resource: configMaps, Namespace: "default", Name: "x", Actor: "operator"}
	tr.BeforeWrite(r)
	tr.change("MODIFIED", "operator", verb, object(nil), object(nil))
	tr.AfterWrite(r, &apiserver.Response{Code: 200})
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
