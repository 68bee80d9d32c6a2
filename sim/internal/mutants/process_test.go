// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package mutants

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/internal/sim/program"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/sim"
)

var budget = flag.Duration("process-budget", 20*time.Second, "how long a mutant is simulated as a process")

func TestMain(m *testing.M) {
	plantest.Main(operate)
	flag.Parse()
	os.Exit(m.Run())
}

// operate runs a mutant, or a twin, as a process.
func operate(arguments []string) error {
	shorten()
	w := workloadCalled(arguments[0])
	return w.Operator(ctrl.SetupSignalHandler(), nil)
}

// workloadCalled returns the workload of a mutant or a twin.
func workloadCalled(name string) sim.Workload {
	for _, m := range All() {
		if string(m.Bug) == name {
			return m.Workload(m.Bug)
		}
	}
	for _, twin := range Twins() {
		if twin.Name == name {
			return twin.Workload()
		}
	}
	panic("no mutant and no twin is called " + name)
}

// scripts are what users do in a workload after the objects are there, as processes have it: merge
// patches of the Widget, which is deleted at the end. Workloads that are not listed have the one of
// "".
var scripts = map[string][]string{
	"":         {`{"spec": {"size": 2, "image": "nginx:2"}}`},
	"children": {`{"spec": {"note": "detour", "child": "elsewhere"}}`, `{"spec": {"note": null, "child": null, "size": 2}}`, `{"spec": {"comment": "nothing to do"}}`},
	"pods":     {`{"spec": {"size": 3}}`, `{"spec": {"size": 1}}`},
	"keeper":   {`{"spec": {"size": 0}}`},
	"held":     {`{"spec": {"size": 0}}`},
	"sets":     {`{"spec": {"size": 2}}`},
}

// virtual are workloads that need virtual time: a player of their own, or a version that is
// installed while they run.
var virtual = []string{"meshed", "upgrade"}

// optionsOf returns what a mutant or twin is simulated with as a process.
func optionsOf(t *testing.T, name string, w sim.Workload) program.Options {
	t.Helper()
	rings.Test(t, "runs operators as processes")
	if slices.Contains(virtual, w.Name) {
		t.Skip("needs virtual time")
	}
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	definitions, err := run.ReadDefinitions([]string{"crd/widgets.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	target := program.Target{Called: "widget", Namespace: "default", Name: "w"}
	samples := w.Objects
	switch w.Name {
	case "pods":
		widget := newWidget()
		widget.Spec = WidgetSpec{Size: 2, Image: "nginx:1"}
		samples = append(samples, widget)
	case "held":
		widget := newWidget()
		widget.Finalizers = []string{"example.com/hold"}
		samples = append(samples, widget)
	case "sets":
		for namespace, name := range map[string]string{"prod": "web", "bprod": "we"} {
			widget := newWidget()
			widget.Namespace, widget.Name = namespace, name
			samples = append(samples, widget)
		}
		target.Namespace, target.Name = "prod", "web"
	default:
		samples = append(samples, newWidget())
	}
	steps := []program.Step{{Apply: manifests(t, samples)}}
	patches, ok := scripts[strings.TrimSuffix(strings.TrimSuffix(w.Name, "-adopt"), "-delete")]
	if !ok {
		patches = scripts[""]
	}
	for _, patch := range patches {
		steps = append(steps, program.Step{Patch: &program.Patch{Target: target, Merge: []byte(patch)}})
	}
	return program.Options{
		Program: plantest.Program(t, name), Supervisor: plantest.Supervisor(t), Definitions: definitions, Script: append(steps, program.Step{Delete: []program.Target{target}}),
		Namespace: "default", Quiet: time.Second, Settle: 6 * time.Second, Parallel: 16, Choice: explore.Choice{Budget: explore.Budget{Time: *budget}},
		Progress: func(string) {}, Again: fault.Plan.String,
	}
}

func manifests(t *testing.T, objects []client.Object) []run.Manifest {
	t.Helper()
	var list []run.Manifest
	for i, obj := range objects {
		gvk, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			t.Fatal(err)
		}
		if secret, ok := obj.(*corev1.Secret); ok && secret.StringData != nil {
			secret.Data = map[string][]byte{"password": []byte(secret.StringData["password"])}
			secret.StringData = nil
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(gvk)
		delete(u.Object, "status")
		list = append(list, run.Manifest{File: "samples", Number: i + 1, Object: u})
	}
	return list
}

// shown is the mutant that make test simulates as a process: no fault is needed for it.
const shown = readyBeforeWork

// unseen are mutants that a minute does not show as processes: some need more plans, some a fault
// or an oracle of virtual time.
var unseen = []Bug{
	forbiddenIsTerminal, hidesChildUpdates, keepsOldField, noBackoff, swallowsConflict, wipesAnnotations, // more plans
	staleCreate, deletesByName, scalesByStale, searchesFirst, // a stale cache for longer
	effectBeforeFinalizer, ignoresDrift, stuckWithoutSecret, leaksGoroutines, // calls outside, and goroutines
}

// The other mutants are caught as processes, too.
func TestMutantsAsProcesses(t *testing.T) {
	list := All()
	for i, m := range list {
		if !inPart(t, i, len(list)) {
			continue
		}
		t.Run(string(m.Bug), func(t *testing.T) {
			if m.Bug != shown {
				rings.Explore(t, "takes a minute for each mutant")
			}
			o := optionsOf(t, string(m.Bug), m.Workload(m.Bug))
			if !slices.Contains(unseen, m.Bug) {
				o.Budget.Time *= 3 // a machine that is busy takes longer
			}
			start := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			o.Found = func(fault.Plan, oracle.Violation) { cancel() } // one is enough
			s, err := program.Explore(ctx, o)
			switch {
			case errors.Is(err, program.ErrReference):
				t.Logf("%s: %v", m.Class, err)
			case err != nil:
				t.Fatal(err)
			case len(s.Findings) > 0:
				f := s.Findings[0]
				took := time.Since(start).Round(time.Second)
				verdict := "as in virtual time"
				if !slices.Contains(m.CaughtBy, f.Oracle) {
					verdict = fmt.Sprintf("in virtual time %v", m.CaughtBy)
				}
				t.Logf("%s: %s (%s): %s, with %s (%d of %d plans, %s)", m.Class, f.Oracle, verdict, f.Example.What, f.Example.Plan.Text, s.Plans.Run, s.Plans.Total, took)
			case slices.Contains(unseen, m.Bug):
				t.Logf("%s: nothing in %d of %d plans, as expected", m.Class, s.Plans.Run, s.Plans.Total)
			default:
				t.Errorf("%s: nothing in %d of %d plans", m.Class, s.Plans.Run, s.Plans.Total)
			}
		})
	}
}

// Right twins raise no alarm as processes.
func TestTwinsAsProcesses(t *testing.T) {
	list := Twins()
	for i, twin := range list {
		if !inPart(t, i, len(list)) {
			continue
		}
		t.Run(twin.Name, func(t *testing.T) {
			rings.Explore(t, "takes a minute for each twin")
			s, err := program.Explore(t.Context(), optionsOf(t, twin.Name, twin.Workload()))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Findings {
				text := f.Example.What
				for _, d := range f.Example.Differences {
					text += "\n  " + d.String()
				}
				t.Errorf("%s: %s, with %s\n%s", f.Oracle, text, f.Example.Plan.Text, f.Example.Trace)
			}
			t.Logf("%d of %d plans", s.Plans.Run, s.Plans.Total)
		})
	}
}
