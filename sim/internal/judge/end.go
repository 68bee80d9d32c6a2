// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/internal/snapshot"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
)

// InjectedPanic is the value of panics that faults cause in the operator.
const InjectedPanic = "sim: injected panic"

// noPanic demands that the operator does not panic where controller-runtime recovers. A panic
// anywhere else ends the process that runs the plan, which is reported by who has started it.
type noPanic struct{}

func (noPanic) AtEnd(_ *ledger, e End, v violate) {
	for _, line := range e.Logs {
		if strings.Contains(line, "[recovered]") && !strings.Contains(line, InjectedPanic) {
			v("the operator panicked, and controller-runtime recovered it: " + line)
		}
	}
}

// sameEnd demands that the world is, at each checkpoint, what it is without the fault. What is only
// history does not count: see [sameHistory].
type sameEnd struct{}

func (sameEnd) AtEnd(l *ledger, e End, v violate) {
	l.compare(e, "the world is not what it is without the fault", func(_ snapshot.Snapshot, d oracle.Difference) bool { return !l.isHistory(d) }, v)
}
