// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/sim/plan"
	"github.com/ctrlkit/ctrlkit/internal/sim/plan/plantest"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// An operator may be written in any language.
func TestAnOperatorInPython(t *testing.T) {
	rings.Explore(t, "starts Python, which takes long beside other work")
	if err := supervisor.CanIsolate(); err != nil {
		t.Skip(err)
	}
	const python = "/usr/bin/python3" // that of the system, which has the packages of the system
	if err := exec.Command(python, "-c", "import kubernetes").Run(); err != nil {
		t.Skipf("python3-kubernetes is not installed: on Debian, apt-get install python3-kubernetes has it: %v", err)
	}
	before := change(app("app-0", "v1"))
	before[0].Object.SetNamespace("default")
	source, err := plan.NewFile(before)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.For(t.Context(), plan.Options{
		Source: source, Operator: trial.Program{Argv: []string{python, "testdata/operator.py"}}, Change: change(app("app-1", "v1")),
		Namespace: "default", Supervisor: plantest.Supervisor(t), Quiet: 2 * time.Second, Timeout: 3 * time.Minute,
		Progress: func(string) {}, Log: func(line string) { t.Log(line) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create Secret default/app-0 by operator"}, described(p.AtStart)); diff != "" {
		t.Errorf("at its start (-want +got):\n%s", diff)
	}
	want := []string{"create ConfigMap default/app-1 by user", "create Secret default/app-1 by operator"}
	if diff := cmp.Diff(want, described(p.Changes)); diff != "" {
		t.Errorf("because of the change (-want +got):\n%s", diff)
	}
}
