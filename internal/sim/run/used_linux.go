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

// Used returns for how long the threads of the program, and of the processes that it started, have had
// a processor, and for how long they have been ready to run while other programs had the processors. It
// is the sum over those that live, and 0 where the kernel does not say it.
func (p *Process) Used() (ran, starved time.Duration) { return used(p.cmd.Process.Pid) }

func used(pid int) (ran, starved time.Duration) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0, 0
	}
	for _, thread := range threads {
		var running, waiting int64 // nanoseconds
		if said, err := os.ReadFile(filepath.Join(thread, "schedstat")); err == nil {
			if _, err := fmt.Sscan(string(said), &running, &waiting); err == nil {
				ran, starved = ran+time.Duration(running), starved+time.Duration(waiting)
			}
		}
		children, err := os.ReadFile(filepath.Join(thread, "children"))
		if err != nil {
			continue
		}
		for _, child := range strings.Fields(string(children)) {
			if id, err := strconv.Atoi(child); err == nil {
				r, s := used(id)
				ran, starved = ran+r, starved+s
			}
		}
	}
	return ran, starved
}
