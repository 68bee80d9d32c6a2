package mutants

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim"
)

// The right twins survive everything.
func TestNoTwinRaisesAnAlarm(t *testing.T) {
	for _, workload := range []func(Bug) sim.Workload{childWorkload, podWorkload, externalWorkload, tokenWorkload} {
		w := workload(Right)
		t.Run(w.Name, func(t *testing.T) { sim.Run(t, w, sim.Pairs(200)) })
	}
}
