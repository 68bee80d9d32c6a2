// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/internal/sim/program"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

const sample = `
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: default, labels: {app: shop}}
`

// optionsFor returns options for an operator with a bug.
func optionsFor(t *testing.T, bug string) program.Options {
	t.Helper()
	rings.Test(t, "runs an operator as a process")
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "sample.yaml")
	text := sample
	if bug == reveals || bug == sleeps {
		text += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: given, namespace: default}\ndata: {password: Y29ycmVjdCBob3JzZQ==}\n"
	}
	if bug == deaf { // an end that comes after it has worked once
		text += "---" + strings.ReplaceAll(sample, "name: shop", "name: second")
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	samples, err := run.ReadManifests(file)
	if err != nil {
		t.Fatal(err)
	}
	return program.Options{
		Program: plantest.Program(t, bug), Supervisor: plantest.Supervisor(t),
		Script: program.ScriptOf(samples, nil), Namespace: "default", Quiet: time.Second, Settle: 4 * time.Second, Parallel: 4,
		Progress: func(string) {}, Again: func(p fault.Plan) string { return "again: " + p.String() },
	}
}

// Each bug is found by the fault that shows it, and by the oracle that is meant for it.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bug, plan string
		want      oracle.Name
		says      string
	}{
		{forgets, "crash after write 1", oracle.SameEnd, "configmaps default/shop metadata.annotations.done: got nothing"},
		{restart, "resync and restart at checkpoint 1", oracle.SilentWhenIdle, "a restart of the idle operator caused: update configmaps default/shop"},
		{panics, "refuse write 2: 409", oracle.NoPanic, "panic: a conflict"},
		{takes, "occupy the name before write 1", oracle.ForeignUntouched, "update secrets default/shop: the object was created by another client"},
		{once, "recreate configmaps default/shop after write 2", oracle.SameEnd, "configmaps default/shop metadata.annotations.done: got nothing"},
		{loses, "delete the object before write 2", oracle.SameEnd, "secrets default/shop is missing"},
		{doubles, "delay the watch of secrets by 1 from event 1", oracle.SameEnd, "secrets default/made-* #2"},
		{orphans, "", oracle.NoOrphans, "secrets default/shop is still there, although what the operator has created it for is gone; if that is meant, say so with --by-design"},
		{repeats, "resync and restart at checkpoint 1", oracle.NoNoopWrites, "a restart of the idle operator caused a write that changes nothing: update configmaps default/shop"},
		{holds, "", oracle.DeletionEnds, "configmaps default/shop is being deleted and stays: the operator is idle, only its own finalizer example.com/app holds the object"},
		{hides, "", oracle.NoPanic, "the operator panicked, and controller-runtime recovered it: it is done"},
		{reveals, "", oracle.NoSecret, "a value of a Secret appears in the log"},
		{takes, "occupy the name before write 1 by another controller", oracle.ForeignUntouched, "update secrets default/shop: the object was created by another client"},
		{uses, "leave an orphan before write 1", oracle.SameEnd, "secrets default/shop metadata.ownerReferences[shop]"},
		{sleeps, "withhold secrets default/given from write 2", oracle.SameEnd, `configmaps default/shop metadata.annotations.done: got "waits"`},
		{once, "delete and later create configmaps default/shop after write 2", oracle.SameEnd, "configmaps default/shop metadata.annotations.done: got nothing"},
		{deaf, "close the watch of configmaps after event 1", oracle.SameEnd, "configmaps default/second metadata.annotations"},
		{deaf, "expire the watch of configmaps after event 1", oracle.SameEnd, "configmaps default/second metadata.annotations"},
		{skips, "miss event 1 of configmaps", oracle.SameEnd, "configmaps default/shop metadata.annotations.done: got nothing"},
		{echoes, "duplicate event 1 of configmaps", oracle.SameEnd, "secrets default/made-* #2"},
		{renames, "crash after write 1", oracle.SameEnd, "+ secrets default/cache-* #2 should not be there"},
		{spins, "refuse write 1: 500", oracle.BecomesIdle, "of a processor: it works in a loop without requests"},
		{resigns, "refuse write 1: 500; refuse write 2: 500", oracle.SameEnd, "secrets default/shop is missing"},
		{lingers, "refuse write 1: 500", oracle.SameEnd, "+ secrets default/left"},
		{doubts, "lose the answer of write 1: 500", oracle.SameEnd, "secrets default/made-*"},
		{doubles, "delay event 1 of secrets", oracle.SameEnd, "secrets default/made-* #2"},
	} {
		t.Run(test.bug+"/"+test.plan, func(t *testing.T) {
			t.Parallel()
			options := optionsFor(t, test.bug)
			given, err := fault.ParsePlan(test.plan)
			if err != nil {
				t.Fatal(err)
			}
			options.Plan = &given
			s, err := program.Explore(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range s.Findings {
				said := f.Example.What
				for _, d := range f.Example.Differences {
					said += "\n" + d.String()
				}
				if f.Oracle == test.want && strings.Contains(said, test.says) {
					return
				}
			}
			t.Errorf("want %s with %q, got %+v of the plans %+v", test.want, test.says, s.Findings, s.Plans)
		})
	}
}

// What a pair of faults shows and one of the two alone, too, is reported with the one.
func TestPairThatOneFaultExplains(t *testing.T) {
	t.Parallel()
	o := optionsFor(t, forgets)
	given, err := fault.ParsePlan("delay event 1 of configmaps; crash after write 1")
	if err != nil {
		t.Fatal(err)
	}
	o.Plan = &given
	s, err := program.Explore(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Findings) == 0 || s.Findings[0].Example.Text != "crash after write 1" {
		t.Fatalf("got %+v", s.Findings)
	}
	if p := s.Plans; p.Total != 2 || p.Run != 2 || p.Pairs != 1 || p.Missed != 0 || s.Stopped != "" {
		t.Errorf("got the plans %+v, %+v, and stopped because of %q", p, s.Findings[0].Plans, s.Stopped)
	}
}

// A storm of requests ends the run, and not the machine.
func TestStorm(t *testing.T) {
	t.Parallel()
	o := optionsFor(t, storms)
	o.Quiet, o.Settle, o.Budget.Time = 20*time.Second, 2*time.Minute, time.Second // so many requests take time on a busy machine
	_, err := program.Explore(t.Context(), o)
	if !errors.Is(err, program.ErrReference) || !strings.Contains(err.Error(), "more than 5000 requests: the operator does not stop working") {
		t.Errorf("got the error %v", err)
	}
}

// An operator without a mistake survives, also what its process ends by.
func TestNoAlarm(t *testing.T) {
	t.Parallel()
	plans := []string{
		"recreate configmaps default/shop after write 1", "recreate configmaps default/shop after write 2", "delete the object before write 2",
		"crash before write 2", "occupy the name before write 1", "delay the watch of secrets by 1 from event 1",
		"leave an orphan before write 1", "occupy the name before write 1 by another controller",
		"delete and later create configmaps default/shop after write 2", "withhold configmaps default/shop from deletion 1",
		"close the watch of configmaps after event 1", "expire the watch of configmaps after event 1",
		"miss event 1 of configmaps", "duplicate event 1 of configmaps", "delay event 1 of configmaps",
		"miss event 1 of secrets", "duplicate event 1 of secrets", "delay event 1 of secrets",
		"refuse write 1: 500; refuse write 2: 500", "crash after write 1; recreate configmaps default/shop after write 1",
		"miss event 1 of configmaps; crash after write 1", "occupy the name before write 1; resync and restart at checkpoint 1",
	}
	if rings.Exploring() {
		plans = append(plans, "")
	}
	for _, text := range plans {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			bug := ""
			switch {
			case strings.HasPrefix(text, "delete the object"):
				bug = labels
			case strings.HasPrefix(text, "miss") && strings.HasSuffix(text, "configmaps"):
				bug = follows
			}
			options := optionsFor(t, bug)
			if text != "" {
				given, err := fault.ParsePlan(text)
				if err != nil {
					t.Fatal(err)
				}
				options.Plan = &given
			}
			s, err := program.Explore(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Findings) > 0 || s.Plans.Run < 2 || s.Plans.Missed > 0 {
				t.Errorf("got %d plans, %d missed, and %+v", s.Plans.Run, s.Plans.Missed, s.Findings)
			}
		})
	}
}

// Operators are not accused of what is right, in runs of these plans.
func TestRightInPlans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, operator, plan string
		explores             bool
	}{
		{"a deletion that takes its time", cleans, "no fault", false},
		{"an object that stays in deletion, and an Event says why", excuses, "no fault", false},

		// A person takes the object away that has the name, also from a busy operator.
		{"an operator that is never idle while a name is not free", counts, "leave an orphan before write 1", false},
		{"while a user has it", counts, "occupy the name before write 1", true},
		{"while another controller has it", counts, "occupy the name before write 1 by another controller", true},

		// It differs in each run.
		{"a name that has a hash of a UID, after a crash", hashes, "crash after write 1", false},
		{"of another UID", hashes, "recreate configmaps default/shop after write 2", false},
		{"of the same one", hashes, "resync and restart at checkpoint 1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if t.Parallel(); test.explores && !rings.Exploring() {
				t.Skip("the orphan is the example of it: the others run when exploring")
			}
			options := optionsFor(t, test.operator)
			given, err := fault.ParsePlan(test.plan)
			if err != nil {
				t.Fatal(err)
			}
			options.Plan = &given
			s, err := program.Explore(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Findings) > 0 || s.Plans.Missed > 0 {
				t.Errorf("%d plans missed, and %+v", s.Plans.Missed, s.Findings)
			}
		})
	}
}

// A program that never comes to the API server is an error that says why.
func TestNoOperator(t *testing.T) {
	t.Parallel()
	options := optionsFor(t, "")
	options.Program.Argv = []string{"sh", "-c", "echo no such database; exit 3"}
	_, err := program.Explore(t.Context(), options)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such database") {
		t.Errorf("got the error %v", err)
	}
}

// A fault that a process can't meet is refused, and not left out.
func TestFaultThatAProcessCannotMeet(t *testing.T) {
	t.Parallel()
	options := optionsFor(t, "")
	options.Plan = &fault.Plan{Faults: []fault.Fault{{Kind: fault.PanicAtRead, At: 2}}}
	_, err := program.Explore(t.Context(), options)
	if !errors.Is(err, program.ErrNotPlayed) || !strings.Contains(err.Error(), `"panic at read 2" exists in virtual time only; what strikes at a process is ["crash after write {at}"`) {
		t.Errorf("got the error %v", err)
	}
}

func TestReadScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	write("a.yaml", sample)
	steps, err := program.ReadScript(write("good.yaml", "- apply: a.yaml\n- patch: {object: configmap/shop, merge: {data: {a: b}}}\n- delete: configmap/other/shop\n"), "default")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.String())
	}
	if diff := cmp.Diff([]string{"apply a.yaml", "patch configmap/shop", "delete configmap/other/shop"}, got); diff != "" {
		t.Error(diff)
	}
	if d := steps[2].Delete[0]; d.Namespace != "other" || d.Name != "shop" || d.Called != "configmap" {
		t.Errorf("got %+v", d)
	}
	for text, want := range map[string]string{
		"":                               "has no steps",
		"- apply: none.yaml":             "step 1: ",
		"- delete: shop":                 `step 1: "shop": must be KIND/NAME`,
		"- {apply: a.yaml, delete: a/b}": "step 1: must be one of",
		"- patch: {object: a/b}":         "step 1: must be one of",
		"- aply: a.yaml":                 `unknown field "aply"`,
	} {
		if _, err := program.ReadScript(write("bad.yaml", text), ""); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "bad.yaml") {
			t.Errorf("%q: got the error %v, want %q", text, err, want)
		}
	}
}

// Custom resources are deleted, in the order that is opposite to the one in which they were
// applied.
func TestScriptOf(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(sample+"---"+strings.ReplaceAll(sample, "shop", "bar")), 0o600); err != nil {
		t.Fatal(err)
	}
	samples, err := run.ReadManifests(file)
	if err != nil {
		t.Fatal(err)
	}
	steps := program.ScriptOf(samples, nil)
	var names []string
	for _, target := range steps[1].Delete {
		names = append(names, target.Name)
	}
	if fmt.Sprint(steps) != "[apply the samples delete the samples]" || !slices.Equal(names, []string{"bar", "shop"}) {
		t.Errorf("got %v, which delete %v", steps, names)
	}
}
