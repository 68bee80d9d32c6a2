// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/fakes"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/trace"
	"github.com/ctrlkit/ctrlkit/internal/sim/players"
	"github.com/ctrlkit/ctrlkit/internal/sim/schedule"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// castPlayers makes the players of a run. failed is called when one of them can't be right.
func castPlayers(w *Workload, c *cluster.Cluster, t *trace.Trace, f *fakes.Run, failed func(text string)) (*players.Players, error) {
	set := w.Players
	if set == nil {
		set = player.Defaults()
	}
	p, err := players.New(players.Options{Set: set, Cluster: c, Scheme: schemeOf(w), Trace: t, Fakes: f, MaxCalls: players.MaxCalls, Failed: failed})
	if err != nil {
		return nil, fmt.Errorf("reading Workload.Players: %w", err)
	}
	return p, nil
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
