// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package supervisor

import "syscall"

func superviseAttributes() *syscall.SysProcAttr { return OwnProcessGroup() }
