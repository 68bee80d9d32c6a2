// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package plantest runs operators as processes in tests of plans: the test binary is the operator,
// and its supervisor.
package plantest

import (
	"fmt"
	"os"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge/registry"
)

// operatorArgument is the first argument of the test binary that is the operator.
const operatorArgument = "operate"

// Main is called first in TestMain. It returns in the process of the tests, and ends the others:
// operate is the operator, which gets the arguments of Program and the cluster of KUBECONFIG.
func Main(operate func(arguments []string) error) {
	if len(os.Args) < 2 || os.Args[1] != operatorArgument {
		return
	}
	arguments := os.Args[2:]
	os.Args = os.Args[:1]
	if err := operate(arguments); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Supervisor returns the command line of the supervisor.
func Supervisor(t testing.TB) []string { return []string{executable(t), supervisor.Name} }

// Program returns the operator with arguments.
func Program(t testing.TB, arguments ...string) trial.Program {
	return trial.Program{
		Argv:        append([]string{executable(t), operatorArgument}, arguments...),
		Environment: []string{registry.Variable + "=" + os.Getenv(registry.Variable)}, // tests of several packages may be in one binary
	}
}

// Start runs the operator on the cluster of a kubeconfig file, with nothing between, until stop is
// called.
func Start(t testing.TB, kubeconfig string, arguments ...string) (stop func()) {
	t.Helper()
	p, err := run.StartProcess(Supervisor(t), Program(t, arguments...).Argv, []string{"KUBECONFIG=" + kubeconfig}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Stop
}

func executable(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}
