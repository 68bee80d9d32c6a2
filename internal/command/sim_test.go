package command

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestTheProgressIsThatOfTheSimulator(t *testing.T) {
	if progressVariable != sim.ProgressVariable {
		t.Errorf("the command listens to %s, the simulator tells %s", progressVariable, sim.ProgressVariable)
	}
}
