// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package command

import "os/exec"

// interruptGroup does nothing: a console interrupts all its processes.
func interruptGroup(*exec.Cmd) {}
