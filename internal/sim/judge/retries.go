// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/internal/sim/judge/cluster"
)

// retries knows which requests are those of an operator that tries again, with pauses, what the
// server refuses: because of a mistake of a user, or a quota. It is right to do that without an end,
// so that these requests do not count as work that does not end.
//
// They are all requests between a refusal and the same one afterwards, if the operator has changed
// nothing in between, took its time, and did not ask for more than a retry needs: a loop of another
// kind may go on meanwhile.
type retries struct {
	made    int // requests so far
	refused map[string]refusedWrite
	judged  int // how many of the requests were judged
	excused int // how many of those are retries
}

// refusedWrite is a write that the server has refused.
type refusedWrite struct {
	at    time.Time // when, as the last
	made  int       // how many requests there were by then
	again bool      // it was refused before, and nothing was changed since
}

const (
	// retryPause is how long an operator waits, at least, that does not try again in a loop: controller-runtime's
	// backoff comes to it with the eleventh failure.
	retryPause = 5 * time.Second

	// retryRequests is how many requests the retry of one write needs, at most.
	retryRequests = 100
)

// answered notes the answer to a write, and reports whether that is a retry after a pause.
func (t *retries) answered(r *apiserver.Request, answer *apiserver.Response) bool {
	if answer.Code < 300 {
		return false
	}
	key := fmt.Sprint(answer.Code, " ", cluster.Describe(r))
	before, again := t.refused[key]
	t.refused[key] = refusedWrite{time.Now(), t.made, again}
	if !again || time.Since(before.at) < retryPause {
		return false
	}
	from := max(before.made, t.judged)
	t.judged = t.made
	if n := t.made - from; n <= retryRequests*t.refusedAgain(from) {
		t.excused += n
	}
	return true
}

// refusedAgain returns how many writes were refused again since there were so many requests.
func (t *retries) refusedAgain(since int) (n int) {
	for _, f := range t.refused {
		if f.again && f.made > since {
			n++
		}
	}
	return n
}

// changed notes that the operator has changed something.
func (t *retries) changed() { clear(t.refused) }
