// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package program makes several programs of one binary. It acts as the program whose name it is
// called by: links to one file are as many programs, whose common code is stored once. If it is
// called by another name, its first argument names the program.
package program

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	_ "time/tzdata" // time zones of CronJobs, on machines that have no zone database

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients in each program
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric with the version

	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes/internal/orphan"
)

// A Program is one that a binary can act as.
type Program struct {
	// Main runs the program with os.Args and returns its exit code.
	Main func() int

	// EndsWithParent is set for servers, which end when their parent process has ended; see package
	// orphan. A client such as kubectl ends by itself, and must finish its work even if its terminal
	// is closed.
	EndsWithParent bool
}

// Server returns a server of Kubernetes.
func Server(newCommand func() *cobra.Command) Program {
	return Program{Main: func() int { return cli.Run(newCommand()) }, EndsWithParent: true}
}

// Run acts as one of the programs, which have names, and exits.
func Run(programs map[string]Program) {
	name := nameIn(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = nameIn(os.Args[0])
	}
	program, known := programs[name]
	if !known {
		names := strings.Join(slices.Sorted(maps.Keys(programs)), ", ")
		fmt.Fprintf(os.Stderr, "unknown program %q: call this file by, or with, one of: %s\n", name, names)
		os.Exit(2)
	}
	if program.EndsWithParent {
		orphan.Watch()
	}
	os.Exit(program.Main())
}

// nameIn returns the last element of path, without the extension of Windows.
func nameIn(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".exe")
}
