// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestTheProgressIsThatOfTheSimulator(t *testing.T) {
	if progressVariable != sim.ProgressVariable {
		t.Errorf("the command reads %s, the simulator writes %s", progressVariable, sim.ProgressVariable)
	}
}
