// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
)

func all(fault.Kind) bool { return true }

func one(int) int { return 1 }

func mustParse(t *testing.T, texts ...string) []fault.Plan {
	t.Helper()
	var plans []fault.Plan
	for _, text := range texts {
		plan, err := fault.ParsePlan(text)
		if err != nil {
			t.Fatal(err)
		}
		plans = append(plans, plan)
	}
	return plans
}

func texts(plans []fault.Plan) []string {
	var list []string
	for _, plan := range plans {
		list = append(list, plan.String())
	}
	return list
}

func violation(name oracle.Name, text string) oracle.Violation {
	return oracle.Violation{Oracle: name, Text: text}
}
