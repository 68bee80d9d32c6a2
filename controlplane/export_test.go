// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

// The tests that share a control plane are in package controlplane_test, because planetest
// imports this package. What they need of its internals is exported here.

const (
	EtcdProgram       = etcdProgram
	APIServerProgram  = apiServerProgram
	KubectlProgram    = kubectlProgram
	ReadinessInterval = readinessInterval
)

var (
	Poll      = poll
	StartWith = startWith
)

// Dir returns the directory of the control plane's files.
func (c *ControlPlane) Dir() string { return string(c.dir) }

// PIDs returns the process ids of the programs, by their names.
func (c *ControlPlane) PIDs() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := make(map[string]int)
	for _, p := range c.processes {
		pids[p.name] = p.command.Process.Pid
	}
	return pids
}

// Programs lists the running programs in the order in which they were started.
func (c *ControlPlane) Programs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, p := range c.processes {
		names = append(names, p.name)
	}
	return names
}
