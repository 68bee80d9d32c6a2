// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times that Linux reports of processes, on each architecture of Go.
const tick = 10 * time.Millisecond

// serverCPU returns the time of all threads of etcd and the API server, which are children of this
// process. The time is zero where the system does not say it.
func serverCPU() (time.Duration, error) {
	threads, err := os.ReadDir("/proc/self/task")
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	var sum time.Duration
	for _, thread := range threads { // a child belongs to the thread that has started it
		children, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			stat, err := os.ReadFile("/proc/" + child + "/stat")
			if err != nil {
				continue // it has ended, as an operator does
			}
			used, err := serverTime(string(stat))
			if err != nil {
				return 0, fmt.Errorf("reading the CPU time of process %s: %w", child, err)
			}
			sum += used
		}
	}
	return sum, err
}

// serverTime returns the time in user and system mode of a process, from its line in /proc, if it is
// etcd or an API server.
func serverTime(stat string) (time.Duration, error) {
	begin, end := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if begin < 0 || end < begin {
		return 0, fmt.Errorf("unexpected %q", stat)
	}
	// Linux cuts the name of a program after 15 bytes.
	if name := stat[begin+1 : end]; name != "etcd" && name != "kube-apiserver" {
		return 0, nil
	}
	fields := strings.Fields(stat[end+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected %q", stat)
	}
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}
