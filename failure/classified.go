// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/condition"
)

// An Option says more about an error than can be seen in it.
type Option func(*classified)

// A classified error is one that somebody has judged.
type classified struct {
	err        error
	class      Class
	severity   condition.Severity
	reason     string
	way        string
	retryAfter time.Duration
}

func (c *classified) Error() string { return c.err.Error() }
func (c *classified) Unwrap() error { return c.err }

func (c *classified) apply(v *Classification) {
	if c.severity != 0 {
		v.Severity = c.severity
	}
	if c.reason != "" {
		v.Reason = c.reason
	}
	if c.way != "" {
		v.Remedy = c.way
	}
	if c.retryAfter != 0 {
		v.RetryAfter = c.retryAfter
	}
}

// Mark returns err with what the options say about it, nil if err is nil. The text stays the same,
// and errors.Is and errors.As see through it. Options of an inner error that the outer one does not
// give anew are kept. Options about one of several joined errors are about that one alone: they do
// not become options of the whole.
func Mark(err error, options ...Option) error {
	if err == nil {
		return nil
	}
	c := &classified{}
	if inner := judgedIn(err); inner != nil {
		*c = *inner
	}
	c.err = err
	for _, o := range options {
		o(c)
	}
	return c
}

// judgedIn returns the outermost error of a chain that somebody has judged, nil if there is none
// before errors are joined.
func judgedIn(err error) *classified {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if c, ok := e.(*classified); ok { //nolint:errorlint // the chain is walked node by node
			return c
		}
	}
	return nil
}

// WithClass says which class it is. Unknown classes are refused by a panic: a class is a constant
// of this package.
func WithClass(class Class) Option {
	if _, ok := rows[class]; !ok {
		panic("failure: there is no class " + string(class))
	}
	return func(c *classified) { c.class = class }
}

// WithSeverity says how bad it is. What is no severity is refused by a panic, as with [WithClass].
func WithSeverity(severity condition.Severity) Option {
	if severity < condition.SeverityInfo || severity > condition.SeverityError {
		panic(fmt.Sprintf("failure: there is no severity %d: use condition.SeverityInfo, Warning or Error", severity))
	}
	return func(c *classified) { c.severity = severity }
}

// WithReason is the reason that conditions and events give, in upper camel case: "QuotaExceeded".
// It may be the error code of another API: what a reason must not have is left out,
// "Quota.Exceeded" is "QuotaExceeded", and if nothing is left, the class stays the reason.
func WithReason(reason string) Option {
	const longest = 1024
	reason = strings.TrimLeft(notInReasons.ReplaceAllString(reason, ""), "0123456789_,:")
	reason = strings.TrimRight(reason[:min(len(reason), longest)], ",:")
	return func(c *classified) { c.reason = reason }
}

// notInReasons matches what the API server refuses in the reason of a condition, wherever it
// stands.
var notInReasons = regexp.MustCompile(`[^A-Za-z0-9_,:]+`)

// WithRemedy says what a person can do about it.
func WithRemedy(way string) Option { return func(c *classified) { c.way = way } }

// WithRetryAfter says when it is tried again, whatever the backoff.
func WithRetryAfter(d time.Duration) Option { return func(c *classified) { c.retryAfter = d } }
