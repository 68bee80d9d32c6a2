// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
)

// again returns the refusal with one more answer. Each attempt begins with a write of the intent,
// and each answer ends with another one: the events of these writes would bring the next attempt at
// once, without the backoff of the failure.
func (r refusal) again(err error, generation int64) refusal {
	if r.generation != generation {
		r.times = 0
	}
	r.times++
	delay := failure.Classify(err).Backoff.Delay(r.times)
	return refusal{err: err, generation: generation, times: r.times, until: time.Now().Add(delay)}
}

// holds returns the error of the last attempt, if it is too early for the next one. A change of the
// spec ends the wait.
func (r refusal) holds(generation int64) error {
	if r.generation != generation || !time.Now().Before(r.until) {
		return nil
	}
	return r.err
}
