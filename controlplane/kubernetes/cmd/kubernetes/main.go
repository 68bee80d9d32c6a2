// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is the control plane in one binary. It acts as the program whose name it is
// called by (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl): five links to
// one file are five programs, whose common code is compiled and stored once. If it is called by
// another name, its first argument names the program.
//
// All programs except kubectl end when their parent process has ended; see package orphan.
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
		fmt.Fprintf(os.Stderr, "unknown program %q: call this file by, or with, one of: %s\n", name, strings.Join(names(), ", "))
		os.Exit(2)
	}
	if program.endsWithParent {
		orphan.Watch()
	}
	os.Exit(program.main())
}

// programName returns the last element of path, without the extension of Windows.
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
