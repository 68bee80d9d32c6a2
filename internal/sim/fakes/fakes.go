// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package fakes keeps the fakes of external systems that users have written: one instance in each run,
// for the operator, the script and the players.
package fakes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/utils/dump"

	"github.com/ctrlkit/ctrlkit/internal/sim/judge/external"
)

// A Run keeps the fakes of one run. Any goroutine may use it.
type Run struct {
	taken []string // names that no fake may have

	mu        sync.Mutex // guards what follows
	instances map[string]any
	unseen    map[string]any             // those that no oracle sees
	added     map[string]external.System // that TakeOver has not taken over yet
}

// New returns a run without fakes, whose external systems have some names already.
func New(taken ...string) *Run {
	return &Run{taken: taken, instances: map[string]any{}, unseen: map[string]any{}, added: map[string]external.System{}}
}

// Instance returns the instance of a name. The first call makes it, and the system as which oracles
// see it, or nil.
func (r *Run) Instance(name string, make func() (instance any, seen external.System)) any {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known, ok := r.instances[name]; ok {
		return known
	}
	if slices.Contains(r.taken, name) {
		panic(fmt.Sprintf("sim: the workload has an external system with the name of the fake %q", name))
	}
	instance, seen := make()
	r.instances[name] = instance
	if seen != nil {
		r.added[name] = seen
	} else {
		r.unseen[name] = instance
	}
	return instance
}

// TakeOver adds what oracles see of the fakes that were made since the last time to other systems.
func (r *Run) TakeOver(systems map[string]external.System) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.Copy(systems, r.added)
	clear(r.added)
}

// mostUnseen is how much text may describe the fakes of a run that no oracle sees. One that holds
// more, such as the whole run, says nothing that two runs could have in common.
const mostUnseen = 1 << 20

// Unseen returns all that those instances hold which no oracle sees, as text, and whether that is
// little enough to be compared with that of another run. Nothing else may use them meanwhile.
func (r *Run) Unseen() (text string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.unseen)) {
		b.WriteString(name + " " + dump.ForHash(r.unseen[name]) + "\n")
		if b.Len() > mostUnseen {
			return "", false
		}
	}
	return b.String(), true
}

// A Member belongs to a run. It is embedded by what users ask for fakes with.
type Member struct{ run *Run }

// Member returns a member of the run.
func (r *Run) Member() Member { return Member{r} }

func (m Member) ofRun() *Run { return m.run }

// OfRun is what embeds a [Member].
type OfRun interface{ ofRun() *Run }

// Of returns the run to which something belongs; nil if it belongs to none.
func Of(of OfRun) *Run { return of.ofRun() }
