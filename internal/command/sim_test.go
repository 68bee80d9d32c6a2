// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestTheProgressIsThatOfTheSimulator(t *testing.T) {
	for got, want := range map[string]string{progressVariable: sim.ProgressVariable, jsonVariable: sim.JSONVariable, shardVariable: sim.ShardVariable, budgetVariable: sim.BudgetVariable, swarmVariable: sim.SwarmVariable, rbacVariable: sim.RBACVariable, faultsVariable: sim.FaultsVariable} {
		if got != want {
			t.Errorf("the command uses %s, the simulator %s", got, want)
		}
	}
}

// A swarm has no end but that of a budget of time, and a seed.
func TestSwarmNeedsTime(t *testing.T) {
	for want, o := range map[string]simOptions{
		"":                          {swarm: true, budget: "1h"},
		"a swarm has no end":        {swarm: true, budget: "quick"},
		"can't be used with --plan": {swarm: true, plan: "crash after write 1", run: "TestX"},
	} {
		if err := o.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", o, err, want)
		}
	}
	for want, o := range map[string]simOptions{
		budgetVariable + "=10m " + swarmVariable + "=7":  {swarm: true, seed: 7},
		budgetVariable + "=1h " + swarmVariable + "=1":   {swarm: true, seed: 1, budget: "1h"},
		budgetVariable + "=quick " + swarmVariable + "=": {seed: 1, budget: "quick"},
	} {
		if got := strings.Join(o.variables(), " "); got != shardVariable+"= "+want {
			t.Errorf("%+v: got %q, want %q", o, got, want)
		}
	}
}
