// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/ctrlkit/ctrlkit/failure"
)

// throttles matches what systems say that ask for fewer calls, where their errors have no types.
var throttles = regexp.MustCompile(`(?i)\b429\b|too ?many ?requests|throttl|rate.?(limit|exceeded)|slow ?down|ResourceExhausted`)

// throttled reports whether an error asks for fewer calls, also if it is not marked, and after which
// time, zero if it does not say. Such a call has done nothing.
func throttled(err error) (after time.Duration, ok bool) {
	if err == nil {
		return 0, false
	}
	if c := failure.Classify(err); c.Class == failure.ClassThrottled {
		return c.RetryAfter, true
	}
	var one interface{ StatusCode() int }
	var other interface{ HTTPStatusCode() int }
	switch {
	case errors.As(err, &one):
		return 0, one.StatusCode() == http.StatusTooManyRequests
	case errors.As(err, &other):
		return 0, other.HTTPStatusCode() == http.StatusTooManyRequests
	}
	return 0, throttles.MatchString(err.Error())
}
