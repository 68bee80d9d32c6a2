// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Starved returns for how long the threads of the program, and of the processes that it started,
// have been ready to run while other programs had the processors. It is the sum over those that
// live, and 0 where the kernel does not say it.
func (p *Process) Starved() time.Duration { return starved(p.cmd.Process.Pid) }

func starved(pid int) (sum time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0
	}
	for _, thread := range threads {
		var running, waiting int64 // nanoseconds
		if said, err := os.ReadFile(filepath.Join(thread, "schedstat")); err == nil {
			if _, err := fmt.Sscan(string(said), &running, &waiting); err == nil {
				sum += time.Duration(waiting)
			}
		}
		children, err := os.ReadFile(filepath.Join(thread, "children"))
		if err != nil {
			continue
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += starved(id)
			}
		}
	}
	return sum
}
