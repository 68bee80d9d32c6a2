// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

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
