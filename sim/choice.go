// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"os"
	"strconv"

	"github.com/ctrlkit/ctrlkit/internal/sim/explore"
	"github.com/ctrlkit/ctrlkit/internal/sim/fault"
)

// choose completes the choice of plans by the flags and the environment. A budget that they name
// replaces a sample, too.
func (s *settings) choose() (err error) {
	text := cmp.Or(*budgetFlag, os.Getenv(BudgetVariable))
	if text != "" {
		s.Sample = 0
	}
	if s.Budget, err = explore.ParseBudget(cmp.Or(text, s.budget)); err != nil {
		return err
	}
	if s.Shard, err = explore.ParseShard(cmp.Or(*shardFlag, os.Getenv(ShardVariable))); err != nil {
		return err
	}
	return s.readSwarm()
}

// readSwarm reads what the flags and the environment say about swarms. They run a swarm instead of
// all other plans.
func (s *settings) readSwarm() error {
	s.Seed = cmp.Or(*seedFlag, s.Seed)
	if *swarmFlag != 0 {
		s.Swarm, s.Only, s.Sample = *swarmFlag, true, 0
	} else if text := os.Getenv(SwarmVariable); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", SwarmVariable, err)
		}
		if s.Budget.Time == 0 {
			return fmt.Errorf("a swarm without end needs a budget of time, such as 10m, not %q", s.Budget)
		}
		s.Seed, s.Only, s.Sample, s.Swarm = seed, true, 0, 0
		s.Endless = s.transitions == nil
	}
	if s.Swarm < 0 {
		return fmt.Errorf("a swarm can't have %d plans", s.Swarm)
	}
	return nil
}

// allows reports whether plans may have faults of a kind.
func (s *settings) allows(k fault.Kind) bool {
	_, skipped := s.skipped[k]
	return !skipped && (k != fault.RestartInPast || s.stale)
}

// plans lists the plans of a run.
func (r *reference) plans(s *settings) []fault.Plan {
	return s.Plans(explore.Faults(r.places, s.allows))
}
