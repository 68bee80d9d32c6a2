//go:build unix

package sim

import "syscall"

// abortSignal makes a Go process print the stacks of its goroutines and end.
const abortSignal = syscall.SIGQUIT
