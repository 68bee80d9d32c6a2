// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package controlplane

import (
	"fmt"
	"runtime"
	"syscall"
)

// platformError says that the control plane can't run here, and what works instead. Nothing below
// it is reached.
func platformError() error {
	return fmt.Errorf("the real control plane does not run on %s: use \"ctrlkit run --on memory\", \"--on cluster\", or Linux", runtime.GOOS)
}

func ownProcessGroup() *syscall.SysProcAttr { return nil }

type reservedPort struct{ number int }

func reservePort() (*reservedPort, error) { return nil, platformError() }

func (*reservedPort) release() error { return nil }
