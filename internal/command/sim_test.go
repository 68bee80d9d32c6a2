// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestTheProgressIsThatOfTheSimulator(t *testing.T) {
	for got, want := range map[string]string{progressVariable: sim.ProgressVariable, jsonVariable: sim.JSONVariable, shardVariable: sim.ShardVariable, budgetVariable: sim.BudgetVariable, rbacVariable: sim.RBACVariable, faultsVariable: sim.FaultsVariable} {
		if got != want {
			t.Errorf("the command uses %s, the simulator %s", got, want)
		}
	}
}
