// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// newRandom returns a source of numbers that depends on the seed and on what they are for, so that
// a change of the edits of one example changes neither its kills nor the edits of another.
func newRandom(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(purpose)) //nolint:errcheck // writing to a hash never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// from returns a duration of the span.
func (s span) from(random *rand.Rand) time.Duration {
	return s.least + time.Duration(random.Int64N(int64(s.most-s.least)+1))
}

// A kill is one SIGKILL.
type kill struct {
	at   time.Duration // since the beginning of the chaos
	down time.Duration // before the operator is started again
}

// planKills returns the kills of a chaos. The last one ends it, so that the quiet begins with a
// fresh process and the greatest disorder.
func planKills(random *rand.Rand, chaos time.Duration, pause span) []kill {
	var kills []kill
	for at := pause.from(random); at < chaos; at += pause.from(random) {
		kills = append(kills, kill{at: at, down: time.Duration(random.Int64N(int64(time.Second)))})
	}
	return append(kills, kill{at: chaos})
}

// An edit is what a user, or another controller, does to one object or to what belongs to it.
type edit struct {
	at    time.Duration // since the beginning of the chaos
	lane  int           // edits of one lane are made one after the other, in the order of the plan
	what  string
	apply func(context.Context, client.Client) error
}

// planEdits asks next for edits at random times. Next says of a random lane what is done to it, and
// changes its model accordingly; what the model is when the last edit is planned, the cluster
// should be when the last edit has been made.
func planEdits(random *rand.Rand, lanes int, chaos time.Duration, pause span, next func(lane int) edit) []edit {
	var edits []edit
	for at := pause.from(random); at < chaos; at += pause.from(random) {
		lane := random.IntN(lanes)
		e := next(lane)
		e.at, e.lane = at, lane
		edits = append(edits, e)
	}
	return edits
}

// editLimit is how long one edit may take. The longest is to create an object again, which waits
// until the operator has cleaned up.
const editLimit = 2 * time.Minute

// An editor makes edits.
type editor struct {
	user client.Client

	mu       sync.Mutex // guards what follows
	made     int
	perLane  map[int][]string
	failures []violation
}

// run makes the edits, each when it is due since start and the ones before it in its lane are made.
// It returns when all are.
func (e *editor) run(ctx context.Context, edits []edit, start time.Time) {
	lanes := make(map[int][]edit)
	for _, ed := range edits {
		lanes[ed.lane] = append(lanes[ed.lane], ed)
	}
	var group sync.WaitGroup
	for _, lane := range lanes {
		group.Go(func() {
			for _, ed := range lane {
				if sleepUntil(ctx, start.Add(ed.at)) != nil {
					return
				}
				e.make(ctx, ed, start)
			}
		})
	}
	group.Wait()
}

func (e *editor) make(ctx context.Context, ed edit, start time.Time) {
	limited, cancel := context.WithTimeout(ctx, editLimit)
	defer cancel()
	err := ed.apply(limited, e.user)
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	if e.perLane == nil {
		e.perLane = make(map[int][]string)
	}
	e.perLane[ed.lane] = append(e.perLane[ed.lane], fmt.Sprintf("%s %s", time.Since(start).Round(100*time.Millisecond), ed.what))
	if err != nil {
		e.failures = append(e.failures, violation{object: fmt.Sprintf("object %d", ed.lane), lane: ed.lane, evidence: ed.what + ": " + err.Error()})
	}
}

func (e *editor) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.made
}

// last returns the last edits of a lane.
func (e *editor) last(lane, n int) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.perLane[lane]
	return all[max(0, len(all)-n):]
}

// sleepUntil returns at a time, or with the reason why ctx is done before.
func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
