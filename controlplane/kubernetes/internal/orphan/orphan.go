// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// OutliveVariable is the environment variable that disables this package if it is not empty,
	// for programs that are to outlive their parent.
	OutliveVariable = "CTRLKIT_OUTLIVE_PARENT"

	// ParentVariable is the environment variable in which the parent may pass its process id.
	// Without it, a parent that ends before the program calls Watch would not be noticed.
	ParentVariable = "CTRLKIT_PARENT_PID"

	// RemoveVariable is the environment variable with directories, separated as in PATH, that an
	// orphaned program removes before it ends. All programs of a control plane may be passed the
	// same directories.
	RemoveVariable = "CTRLKIT_REMOVE_WHEN_ORPHANED"
)

const interval = 500 * time.Millisecond

// Watch makes the process exit with code 1 within about half a second after
// its parent has ended. It returns at once; call it first in main.
//
// It also ignores SIGPIPE, so that a write to a closed standard output or error is an ordinary
// error: their reader often is the parent, and a program that the signal ends would not remove its
// directories.
func Watch() {
	if os.Getenv(OutliveVariable) != "" {
		return
	}
	signal.Ignore(syscall.SIGPIPE)
	parent := expectedParent(os.Getenv(ParentVariable), os.Getppid())
	directories := disposable(os.Getenv(RemoveVariable), os.Args[1:])
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for os.Getppid() == parent {
			<-ticker.C
		}
		remove(directories)
		fmt.Fprintf(os.Stderr, "%s ends because its parent process (%d) has ended\n", filepath.Base(os.Args[0]), parent)
		os.Exit(1)
	}()
}

// expectedParent returns the process id that the parent passed, or else the one seen now. It
// ignores a value that is not a number.
func expectedParent(said string, seen int) int {
	if pid, err := strconv.Atoi(said); err == nil {
		return pid
	}
	return seen
}

// disposable returns the directories to remove: those that are named, and those that envtest
// created for this program. It recognizes the latter by the prefix of envtest's temporary
// directories. envtest removes them itself unless it is killed.
func disposable(named string, args []string) []string {
	directories := filepath.SplitList(named)
	for _, arg := range args {
		flag, directory, _ := strings.Cut(arg, "=")
		if flag != "--data-dir" && flag != "--cert-dir" {
			continue
		}
		if strings.HasPrefix(filepath.Base(directory), "k8s_test_framework_") {
			directories = append(directories, directory)
		}
	}
	return directories
}

// remove tries to remove each directory a few times, since this program may still be writing to it.
// It does not report errors: no process remains that would read them.
func remove(directories []string) {
	for _, directory := range directories {
		for range 5 {
			if os.RemoveAll(directory) == nil {
				break
			}
		}
	}
}
