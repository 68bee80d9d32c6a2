// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

// leakTime is how long, in virtual time, the goroutines of an operator may live on after it has
// returned.
const leakTime = 5 * time.Minute

// checkGoroutines looks for goroutines that the operator has not ended. It lets all of leakTime pass,
// for those that wait for a timer, such as a backoff. A run must not end earlier when it sees none:
// how many goroutines there are depends on what other tests do.
func (r *run) checkGoroutines(before int) (leaked bool) {
	time.Sleep(leakTime)
	synctest.Wait()
	// One more than before is this bubble's own.
	if runtime.NumGoroutine() <= before+1 {
		return false
	}
	orphans := goroutinesOfBubble()
	if len(orphans) == 0 {
		return false // the count includes goroutines of other tests
	}
	r.judge.Report(oracle.NoGoroutineLeft, fmt.Sprintf("%d goroutines are left after the operator has ended, they are:\n%s", len(orphans), strings.Join(orphans, "\n\n")))
	return true
}

// stackBuffer is where stacks are written: each run looks at them, and would otherwise allocate more
// for that than for anything else.
var stackBuffer struct {
	sync.Mutex
	data []byte
}

// goroutinesOfBubble returns the stacks of the other goroutines of this bubble.
func goroutinesOfBubble() []string {
	stackBuffer.Lock()
	defer stackBuffer.Unlock()
	if stackBuffer.data == nil {
		stackBuffer.data = make([]byte, 1<<20)
	}
	stacks := bytes.Split(stackBuffer.data[:runtime.Stack(stackBuffer.data, true)], []byte("\n\n"))
	header, _, _ := bytes.Cut(stacks[0], []byte("\n"))
	_, bubble, ok := bytes.Cut(header, []byte("synctest bubble "))
	if !ok {
		return nil
	}
	label := append([]byte("synctest bubble "), bubble[:bytes.IndexAny(bubble, ",]")]...)
	var list []string
	for _, stack := range stacks[1:] {
		header, _, _ := bytes.Cut(stack, []byte("\n"))
		if bytes.Contains(stack, []byte("testing/synctest.")) {
			continue // the goroutines of the bubble itself
		}
		if bytes.Contains(header, append(slices.Clone(label), ']')) || bytes.Contains(header, append(slices.Clone(label), ',')) {
			list = append(list, string(stack))
		}
	}
	return list
}
