// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"
	"testing"
)

// A panic is one finding whenever it happens and whatever the object, and it has the stack below
// the line that has panicked. An error that speaks of a stack has none.
func TestPanicsAreToldApartByWhatPanicked(t *testing.T) {
	said := func(logs ...string) (texts []string) {
		noPanic{}.AtEnd(nil, End{Logs: logs}, func(text string, _ ...differences) { texts = append(texts, text) })
		return texts
	}
	trace := `  1.2s  operator  "msg"="Observed a panic" "panic"="nil \"map\"" "stacktrace"="goroutine 1 [running]:\nrecovery()\n\t/recovery.go:1\npanic({0x1, 0x2})\n\t/panic.go:2\nmain.work(0x0)\n\t/work.go:3\n"`
	one := said(trace, `  1.2s  operator  "msg"="Reconciler error" "error"="panic: nil \"map\" [recovered]" "name"="x"`)
	two := said(`1h0m2s  operator-2  "msg"="Reconciler error" "error"="panic: nil \"map\" [recovered]" "name"="y"`)
	if len(one) != 1 || len(two) != 1 {
		t.Fatalf("got %q and %q, want a finding each", one, two)
	}
	first, stack, _ := strings.Cut(one[0], "\n")
	if first != two[0] {
		t.Errorf("the same panic is %q and %q", first, two[0])
	}
	if want := "main.work(0x0)\n\t/work.go:3"; stack != want {
		t.Errorf("the stack is %q, want %q", stack, want)
	}
	if got := said(`"msg"="Reconciler error" "error"="no stack"`, trace); got != nil {
		t.Errorf("got %q without a recovered panic", got)
	}
}
