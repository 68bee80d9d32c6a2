//go:build !linux

package run

import "syscall"

func superviseAttributes() *syscall.SysProcAttr { return ownProcessGroup() }
