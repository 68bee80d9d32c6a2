// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// One action asks at a time. The others wait in a way that a context ends, and that a simulation
// sees: a lock that is held during a request would stop its time.
func TestOneActionAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f freshness
		asking, most := 0, 0
		for range 3 {
			go func() {
				done, err := f.ask(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer done()
				asking++
				most = max(most, asking)
				time.Sleep(time.Second) // in the time of the bubble
				asking--
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the operator stops")
		cancel(cause)
		if _, err := f.ask(ctx); !errors.Is(err, cause) {
			t.Errorf("got error %v, want the cause of the context", err)
		}
		time.Sleep(3 * time.Second)
		if synctest.Wait(); most != 1 || asking != 0 {
			t.Errorf("%d actions asked at the same time, and %d still do", most, asking)
		}
	})
}
