//go:build !unix

package run

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

func ownProcessGroup() *syscall.SysProcAttr { return nil }

// terminateGroup ends the process: there is no gentle way here.
func terminateGroup(cmd *exec.Cmd) error { return killGroup(cmd) }

// killGroup ends the process itself; what it started is not known.
func killGroup(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
