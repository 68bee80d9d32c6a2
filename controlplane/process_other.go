//go:build !unix

package controlplane

import "syscall"

func ownProcessGroup() *syscall.SysProcAttr { return nil }
