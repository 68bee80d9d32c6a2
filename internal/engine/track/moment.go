// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import "time"

// A Moment is a time of this process in a third of the space of a time.Time: there are several for
// each object. It has the monotonic clock, so that a step of the wall clock moves none. Its zero
// value is no time.
type Moment int64

var origin = time.Now().Add(-1)

// MomentOf returns the moment of a time that this process has read from its clock, or of one that
// was added to it. That of the zero time is zero.
func MomentOf(t time.Time) Moment {
	if t.IsZero() {
		return 0
	}
	return Moment(t.Sub(origin))
}

// IsZero reports whether m is no time.
func (m Moment) IsZero() bool { return m == 0 }

// Until returns how long it is from now until m, negative if m is past.
func (m Moment) Until(now time.Time) time.Duration { return time.Duration(m - MomentOf(now)) }

// Since returns how long ago m was, negative if it is to come.
func (m Moment) Since(now time.Time) time.Duration { return -m.Until(now) }
