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
	"github.com/ctrlkit/ctrlkit/internal/engine/outcome"
)

// An Option adds to an error what the table cannot know.
type Option func(*classified)

// A classified error is one with a [Mark].
type classified struct {
	err        error
	class      Class
	severity   condition.Severity
	reason     string
	remedy     string
	retryAfter time.Duration
	backoff    Backoff
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
	if c.remedy != "" {
		v.Remedy = c.remedy
	}
	if c.retryAfter != 0 {
		v.RetryAfter = c.retryAfter
	}
	v.Backoff = c.backoff.over(v.Backoff)
}

// Mark returns err with the options attached, nil if err is nil:
//
//   - The text stays the same, and errors.Is and errors.As see through it.
//   - Options of an inner error are kept, unless the outer one sets them again.
//   - Options of one of several joined errors apply to that one alone, not to the whole.
func Mark(err error, options ...Option) error {
	if err == nil {
		return nil
	}
	c := &classified{}
	if inner := markedIn(err); inner != nil {
		*c = *inner
	}
	c.err = err
	for _, o := range options {
		o(c)
	}
	return c
}

// Terminal returns err as a failure that no retry ends before a person changes something, nil if
// err is nil: [Mark] with [ClassTerminal], a reason and a remedy. One that is empty stays as it is,
// that of an inner error or of the class.
func Terminal(err error, reason, remedy string, options ...Option) error {
	of := []Option{WithClass(ClassTerminal)}
	if reason != "" {
		of = append(of, WithReason(reason))
	}
	if remedy != "" {
		of = append(of, WithRemedy(remedy))
	}
	return Mark(err, append(of, options...)...)
}

// markedIn returns the outermost error of a chain that has a [Mark], nil if there is none before
// errors are joined.
func markedIn(err error) *classified {
	for e := err; e != nil; e = errors.Unwrap(e) {
		if c, ok := e.(*classified); ok { //nolint:errorlint // the chain is walked node by node
			return c
		}
	}
	return nil
}

// WithClass sets the class. It panics if class is not a constant of this package.
func WithClass(class Class) Option {
	if _, ok := rows[class]; !ok {
		panic("failure: there is no class " + string(class))
	}
	return func(c *classified) { c.class = class }
}

// WithSeverity sets the severity. It panics if severity is invalid.
func WithSeverity(severity condition.Severity) Option {
	if severity < condition.SeverityInfo || severity > condition.SeverityError {
		panic(fmt.Sprintf("failure: there is no severity %d: use condition.SeverityInfo, Warning or Error", severity))
	}
	return func(c *classified) { c.severity = severity }
}

// WithReason sets the reason of conditions and events, in upper camel case: "QuotaExceeded". It may
// be the error code of another API: characters that a reason must not have are dropped, so that
// "Quota.Exceeded" becomes "QuotaExceeded"; if none remain, the class stays the reason.
func WithReason(reason string) Option {
	const longest = 1024
	reason = strings.TrimLeft(notInReasons.ReplaceAllString(reason, ""), "0123456789_,:")
	reason = strings.TrimRight(reason[:min(len(reason), longest)], ",:")
	return func(c *classified) { c.reason = reason }
}

// notInReasons matches what the API server refuses anywhere in the reason of a condition.
var notInReasons = regexp.MustCompile(`[^A-Za-z0-9_,:]+`)

// WithRemedy sets what a person can do about it, in a sentence.
func WithRemedy(remedy string) Option { return func(c *classified) { c.remedy = remedy } }

// AppendRemedy returns err with the remedies that it was given in its text, each after its cause, on one
// line: conditions show the text alone. The remedy of a class is not appended.
func AppendRemedy(err error) error {
	all := Causes(err)
	for i, cause := range all {
		c := Classify(cause)
		if c.Remedy != "" && c.Remedy != RemedyOf(c.Class) && !strings.Contains(cause.Error(), c.Remedy) {
			all[i] = fmt.Errorf("%w; %s", cause, c.Remedy)
		}
	}
	return outcome.JoinErrors(all)
}

// WithRetryAfter sets the delay until the next try, whatever the backoff.
func WithRetryAfter(d time.Duration) Option { return func(c *classified) { c.retryAfter = d } }

// WithBackoff replaces the backoff of the class. A time that is zero stays as it is.
func WithBackoff(b Backoff) Option { return func(c *classified) { c.backoff = b } }
