// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// InjectedPanic is the value of panics that faults cause in the operator.
const InjectedPanic = "sim: injected panic"

// noPanic demands that the operator does not panic where controller-runtime recovers. A panic
// anywhere else ends the process that runs the plan, which is reported by who has started it.
type noPanic struct{}

func (noPanic) AtEnd(_ *ledger, e End, v violate) {
	for i, line := range e.Logs {
		found := recovered.FindStringSubmatch(line)
		if found == nil || strings.Contains(line, InjectedPanic) {
			continue
		}
		text := "the operator panicked, and controller-runtime recovered it: " + found[1]
		if stack := stackOf(e.Logs[:i]); stack != "" {
			text += "\n" + stack
		}
		v(text)
	}
}

var (
	// recovered matches the error of a reconcile that has panicked. What is before it differs
	// between runs: the time, the object.
	recovered = regexp.MustCompile(`panic: (.*) \[recovered\]`)

	// stacktrace matches what apimachinery logs when it recovers a panic.
	stacktrace = regexp.MustCompile(`"stacktrace"=("(?:[^"\\]|\\.)*")`)
)

// stackLines is how many lines of a stack are shown, at most.
const stackLines = 16

// stackOf returns the stack of the last panic that was logged, from the line that has panicked on.
// The frames above it are those of the recovery.
func stackOf(logs []string) string {
	for _, line := range slices.Backward(logs) {
		found := stacktrace.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		stack, err := strconv.Unquote(found[1])
		if err != nil {
			return ""
		}
		lines := strings.Split(strings.TrimSpace(stack), "\n")
		for i := len(lines) - 1; i > 0; i-- {
			if strings.HasPrefix(lines[i], "panic(") {
				lines = lines[min(i+2, len(lines)):]
				break
			}
		}
		return strings.Join(lines[:min(stackLines, len(lines))], "\n")
	}
	return ""
}

// sameEnd demands that the world is, at each checkpoint, what it is without the fault. What is only
// history does not count: see [sameHistory].
type sameEnd struct{}

func (sameEnd) AtEnd(l *ledger, e End, v violate) {
	l.compare(e, "the world is not what it is without the fault", isPresent(l), v)
}
