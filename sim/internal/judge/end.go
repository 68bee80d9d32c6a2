// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ctrlkit/ctrlkit/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/internal/cluster"
)

// InjectedPanic is the value of panics that faults cause in the operator.
const InjectedPanic = "sim: injected panic"

// noSecret demands that no value of a Secret of a user appears elsewhere.
type noSecret struct{}

func (noSecret) OnChange(l *ledger, c *change, v violate) {
	if cluster.IsSecret(c.Resource) || c.New == nil {
		return
	}
	status := statusOf(c.New)
	if status == nil {
		return
	}
	data, err := json.Marshal(status)
	if err == nil && l.revealsSecret(string(data)) {
		v("a value of a Secret appears in the status of " + c.canonical)
	}
}

func (noSecret) OnEvent(l *ledger, r *apiserver.Request, v violate) {
	if l.revealsSecret(string(r.Body)) {
		v("a value of a Secret appears in an Event")
	}
}

func (noSecret) AtEnd(l *ledger, e End, v violate) {
	for _, line := range e.Logs {
		if l.revealsSecret(line) {
			v("a value of a Secret appears in the log")
		}
	}
}

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

// sameEnd demands that the world is, at each checkpoint, what it is without the fault.
type sameEnd struct{}

func (sameEnd) AtEnd(l *ledger, e End, v violate) {
	if l.reference == nil || l.aborted {
		return
	}
	for i, want := range l.reference.Checkpoints {
		if i >= len(e.Checkpoints) {
			return
		}
		differences := want.Diff(e.Checkpoints[i], l.reference.Mask)
		if len(differences) == 0 {
			continue
		}
		lines := make([]string, len(differences))
		for j, d := range differences {
			lines[j] = d.String()
		}
		v(fmt.Sprintf("at checkpoint %d of %d, the world is not what it is without the fault:\n  %s",
			i+1, len(l.reference.Checkpoints), strings.Join(lines, "\n  ")), differences...)
		return // what differs later may follow from it
	}
}
