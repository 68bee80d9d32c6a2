// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/ctrlkit/ctrlkit/sim/internal/players"
	"github.com/ctrlkit/ctrlkit/sim/internal/schedule"
	"github.com/ctrlkit/ctrlkit/sim/oracle"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// castPlayers makes the players of the run.
func (r *run) castPlayers() (err error) {
	set := r.workload.Players
	if set == nil {
		set = player.Defaults()
	}
	r.players, err = players.New(players.Options{
		Set: set, Cluster: r.cluster, Scheme: r.scheme, Trace: r.trace, Failed: func(text string) {
			r.judge.Report(oracle.ScriptRuns, text)
			r.abort()
		},
	})
	if err != nil {
		return fmt.Errorf("Workload.Players: %w", err)
	}
	return nil
}

// firstOf is two sources, of which the first one comes first.
type firstOf [2]schedule.Source

func (f firstOf) Step() bool { return f[0].Step() || f[1].Step() }

func (f firstOf) Due() time.Time {
	a, b := f[0].Due(), f[1].Due()
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
