// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/controlplane/controlplanetest"
)

// TestExplainAnOperator runs scripts beside a real control plane with the operator and the samples
// of examples/03_rwexternal. Besides "exits" they have
//
//	until PATTERN PROGRAM ...   repeats a program until its output has a match
//	obeys PATTERN               runs the first match in the last output, as if it were pasted
func TestExplainAnOperator(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a control plane, which takes minutes to build and seconds to start")
	}
	plane := controlplanetest.Start(t, controlplane.Options{CRDs: []string{"../../examples/03_rwexternal/config/crd/bases"}})
	kubectl := plane.Assets().Program("kubectl")
	if output, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", plane.Kubeconfig(), "apply", "-f", "../../examples/03_rwexternal/config/samples").CombinedOutput(); err != nil {
		t.Fatalf("applying the samples: %v\n%s", err, output)
	}
	endpoint := startOperator(t, plane)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "explain"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("KUBECONFIG", plane.Kubeconfig())
			env.Setenv("ENDPOINT", "http://"+endpoint)
			env.Setenv("PATH", env.Getenv("PATH")+string(os.PathListSeparator)+filepath.Dir(kubectl))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "until": until, "obeys": obeys},
	})
}

// startOperator builds the operator and runs it until the test ends, and returns where it serves.
func startOperator(t *testing.T, plane *controlplane.ControlPlane) (endpoint string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../../examples/03_rwexternal"
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, output)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	endpoint = listener.Addr().String()
	if err := listener.Close(); err != nil { // the operator takes the port
		t.Fatal(err)
	}
	var output strings.Builder
	operator := exec.CommandContext(t.Context(), program, "--metrics-bind-address="+endpoint)
	operator.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	operator.Stderr = &output
	operator.Cancel = func() error { return operator.Process.Signal(os.Interrupt) }
	operator.WaitDelay = 10 * time.Second
	if err := operator.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the context of the test is done by now
		_ = operator.Wait()
		if t.Failed() {
			t.Logf("the operator:\n%s", output.String())
		}
	})
	return endpoint
}

// until runs a program until its standard output matches. The operator works in a process of its
// own: nothing reports that it is done.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN PROGRAM ...")
	}
	wanted, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; {
		_ = ts.Exec(args[1], args[2:]...) // an object that is not ready has an exit code
		if wanted.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("nothing matched %s", wanted)
		}
	}
}

func obeys(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: obeys PATTERN")
	}
	command := regexp.MustCompile(args[0]).FindString(ts.ReadFile("stdout"))
	if command == "" {
		ts.Fatalf("nothing matches %s", args[0])
	}
	ts.Check(ts.Exec("sh", "-c", command))
}
