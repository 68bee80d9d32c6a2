// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Used returns for how long the threads of the program, and of the processes that it started, have had
// a processor, and for how long they have been ready to run while other programs had the processors. It
// is the sum over those that live, and 0 where the kernel does not say it.
func (p *Process) Used() (ran, starved time.Duration) { return used(p.cmd.Process.Pid) }

func used(pid int) (ran, starved time.Duration) {
	tasks := fmt.Sprintf("/proc/%d/task/", pid)
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return 0, 0
	}
	for _, thread := range threads {
		said := wordsIn(tasks + thread.Name() + "/schedstat")
		if len(said) > 1 {
			ran, starved = ran+nanoseconds(said[0]), starved+nanoseconds(said[1])
		}
		for _, child := range wordsIn(tasks + thread.Name() + "/children") {
			if id, err := strconv.Atoi(child); err == nil {
				r, s := used(id)
				ran, starved = ran+r, starved+s
			}
		}
	}
	return ran, starved
}

// wordsIn returns the words of a file, none if it can't be read: a thread may have ended.
func wordsIn(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

func nanoseconds(text string) time.Duration {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(n)
}
