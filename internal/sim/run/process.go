// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"os"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/sim/run/supervisor"
)

// A Process is a program that runs under a supervisor, so that it ends with the process that has
// started it, even if that is killed.
type Process struct{ *operator }

// StartProcess starts a program. command is the beginning of the command line of a
// supervisor, environment is added to that of this process, and line
// is called for each line that the program writes; it may be nil. If isolation is not nil, the
// program reaches nothing but its address, sees no files but those that it was given, and gets
// little of the environment of this process. Where that runs in a Pod, the program does not learn of its
// cluster: a client that finds the variable, even an empty one, takes it instead of a kubeconfig.
func StartProcess(command, argv, environment []string, isolation *supervisor.Isolation, line func(string)) (*Process, error) {
	group := supervisor.OwnProcessGroup()
	inherited := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "KUBERNETES_SERVICE_") })
	if isolation != nil {
		if err := isolation.Around(argv, environment); err != nil {
			return nil, err
		}
		group, inherited, line = supervisor.IsolatedProcessGroup(), isolation.Environment(), isolation.Heard(line)
		command = slices.Concat(command, isolation.Arguments())
	}
	o, err := startIn(group, command, argv, append(inherited, environment...), &logTail{pass: line})
	if err != nil {
		return nil, err
	}
	return &Process{o}, nil
}

// Ended returns a channel that is closed when the program has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// HowItEnded describes how the program ended. Call it only when it has.
func (p *Process) HowItEnded() string { return p.howItEnded() }

// Stop asks the program to terminate, and returns when it and the processes that it started have
// ended. It may be called more than once.
func (p *Process) Stop() { p.stop() }

// Kill ends the program and the processes that it started with SIGKILL, and returns when they have
// ended.
func (p *Process) Kill() { p.kill() }

// Last returns the last lines that the program has written, n at most.
func (p *Process) Last(n int) []string {
	lines := p.log.last()
	return lines[max(0, len(lines)-n):]
}
