// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is the control plane in one binary: it acts as the
// program by whose name it is called (etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl), so that five links to one
// file stand for five programs and their common code is compiled and stored
// once. Called by any other name, it takes the program from its first argument.
//
// Every program but kubectl ends when the process that started it is gone; see
// package orphan.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes/internal/orphan"
)

func main() {
	name := programName(os.Args[0])
	if _, known := programs[name]; !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		name = programName(os.Args[0])
	}
	program, known := programs[name]
	if !known {
		fmt.Fprintf(os.Stderr, "no program is named %q; call this file by, or with, one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	if program.endsWithParent {
		orphan.Watch()
	}
	os.Exit(program.main())
}

// programName is the last element of path, without Windows' ending.
func programName(path string) string {
	return strings.TrimSuffix(filepath.Base(path), ".exe")
}

func names() []string {
	var all []string
	for name := range programs {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
