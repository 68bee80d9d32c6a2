// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"

	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/command/commandtest"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// TestExplainAnOperator runs scripts beside a real control plane with the operator and the samples
// of examples/03_rwexternal.
func TestExplainAnOperator(t *testing.T) {
	rings.Test(t, "starts a control plane")
	plane := planetest.Start(t, controlplane.Options{CRDs: []string{"../../examples/03_rwexternal/config/crd/bases"}})
	kubectl := plane.Assets().Program("kubectl")
	if output, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", plane.Kubeconfig(), "apply", "-f", "../../examples/03_rwexternal/config/samples").CombinedOutput(); err != nil {
		t.Fatalf("applying the samples: %v\n%s", err, output)
	}
	endpoint := startOperator(t, plane)
	runScripts(t, "explain", testscript.Params{Setup: func(env *testscript.Env) error {
		env.Setenv("KUBECONFIG", plane.Kubeconfig())
		env.Setenv("ENDPOINT", "http://"+endpoint)
		env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(kubectl))
		return nil
	}})
}

// startOperator builds the operator and runs it until the test ends, and returns where it serves.
func startOperator(t *testing.T, plane *controlplane.ControlPlane) (endpoint string) {
	t.Helper()
	project, err := run.FindProject(t.Context(), "../../examples/03_rwexternal")
	must(t, err)
	program, err := project.Build(t.Context(), io.Discard, os.Stderr)
	must(t, err)
	endpoint, err = commandtest.FreePort()
	must(t, err)
	var output strings.Builder
	operator := exec.CommandContext(t.Context(), program, "--metrics-bind-address="+endpoint)
	operator.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	operator.Stderr = &output
	operator.Cancel = func() error { return operator.Process.Signal(os.Interrupt) }
	operator.WaitDelay = 10 * time.Second
	must(t, operator.Start())
	t.Cleanup(func() { // the context of the test is done by now
		_ = operator.Wait()
		if t.Failed() {
			t.Logf("the operator:\n%s", output.String())
		}
	})
	return endpoint
}
