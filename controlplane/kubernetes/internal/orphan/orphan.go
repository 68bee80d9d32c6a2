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
	// OutliveVariable names the environment variable that switches this package
	// off when it is set to anything but nothing, for those who let a program
	// run on by itself.
	OutliveVariable = "CTRLKIT_OUTLIVE_PARENT"

	// ParentVariable names the environment variable in which a starter may give
	// its process id. It closes the gap in which the starter dies before the
	// program has looked who it was.
	ParentVariable = "CTRLKIT_PARENT_PID"

	// RemoveVariable names the environment variable with directories, separated
	// as in PATH, that an orphaned program removes before it ends. Every program
	// of a control plane may be given the same ones: the last to end leaves nothing.
	RemoveVariable = "CTRLKIT_REMOVE_WHEN_ORPHANED"
)

const interval = 500 * time.Millisecond

// Watch makes the process exit with code 1 within about half a second after
// its parent has ended. It returns at once; call it first in main.
//
// It also makes writes to a closed standard output or error an ordinary error:
// their reader often is the parent, and a program that dies of its own log
// (SIGPIPE) would not come to remove its directories.
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
		fmt.Fprintf(os.Stderr, "%s ends because the process that started it (%d) is gone\n", filepath.Base(os.Args[0]), parent)
		os.Exit(1)
	}()
}

// expectedParent prefers what the starter said over what is seen now. A value
// that is no number says nothing.
func expectedParent(said string, seen int) int {
	if pid, err := strconv.Atoi(said); err == nil {
		return pid
	}
	return seen
}

// disposable lists the directories to remove: the named ones, and those that
// envtest created for this program alone. It tells the latter by the prefix
// that envtest gives to its temporary directories, and removes them itself
// unless it is killed.
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

// remove tries each directory a few times, since this program may still be
// writing to it, and stays silent: there is nobody left to be told.
func remove(directories []string) {
	for _, directory := range directories {
		for range 5 {
			if os.RemoveAll(directory) == nil {
				break
			}
		}
	}
}
