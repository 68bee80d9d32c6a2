// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
	"github.com/ctrlkit/ctrlkit/internal/sim/run"
	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// Program is an operator as a process.
type Program struct {
	Argv        []string // "{kubeconfig}" in it stands for the path of the cluster's kubeconfig file
	Environment []string
}

// Confinement says how a program is kept from what is outside its cluster.
type Confinement struct {
	Supervisor []string // the command line of [run.StartProcess]
	Directory  string   // where the socket to the cluster is, and nothing else
	Outside    bool     // let the program reach everything

	// Refused is called with each host that the program has tried to reach, and Visible with each
	// directory that could not be hidden from it. Both may be nil.
	Refused, Visible func(string)
}

// Start starts a program on a cluster. The caller ends the process, and calls release after that. Line is
// called with each line of the program; it may be nil.
func (p Program) Start(c *memory.Cluster, in Confinement, line func(string)) (process *run.Process, release func(), err error) {
	argv := slices.Clone(p.Argv)
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "{kubeconfig}", c.Kubeconfig())
	}
	var isolation *supervisor.Isolation
	release = func() {}
	if !in.Outside {
		isolation = &supervisor.Isolation{
			Socket: filepath.Join(in.Directory, "api.sock"), Address: strings.TrimPrefix(c.Config().Host, "https://"), Refused: in.Refused, Visible: in.Visible,
		}
		if release, err = isolation.Forward(); err != nil {
			return nil, nil, err
		}
	}
	environment := append([]string{"KUBECONFIG=" + c.Kubeconfig()}, p.Environment...)
	if process, err = run.StartProcess(in.Supervisor, argv, environment, isolation, line); err != nil {
		release()
		return nil, nil, err
	}
	return process, release, nil
}
