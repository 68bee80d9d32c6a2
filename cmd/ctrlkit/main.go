// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command ctrlkit writes, checks and runs Kubernetes operators that are built with package ctrlkit.
//
// Installed under the name kubectl-ctrlkit it answers as a plugin: kubectl ctrlkit.
package main

import (
	"os"

	"github.com/ctrlkit/ctrlkit/internal/command"
)

func main() {
	os.Exit(command.Main())
}
