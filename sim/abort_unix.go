// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sim

import "syscall"

// abortSignal makes a Go process print the stacks of its goroutines and end.
const abortSignal = syscall.SIGQUIT
