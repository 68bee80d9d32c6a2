// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package supervisor

import (
	"errors"
	"runtime"
	"syscall"
)

// CanIsolate returns why programs can't run in a network of their own on this machine, or nil.
func CanIsolate() error {
	return errors.New("processes have no networks of their own on " + runtime.GOOS)
}

func IsolatedProcessGroup() *syscall.SysProcAttr { return OwnProcessGroup() }

func loopbackUp() error { return CanIsolate() }

func (i Isolation) hide(func(string)) error { return CanIsolate() }
