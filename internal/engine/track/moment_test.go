// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package track

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMoment(t *testing.T) {
	check := func(t *testing.T) {
		now := time.Now()
		m := MomentOf(now.Add(time.Minute))
		same(t, "until", time.Minute, m.Until(now))
		same(t, "since", time.Second, m.Since(now.Add(time.Minute+time.Second)))
		if m.IsZero() || MomentOf(now).IsZero() || !MomentOf(time.Time{}).IsZero() {
			t.Error("only the zero time is no moment")
		}
	}
	check(t)
	synctest.Test(t, check)
}
