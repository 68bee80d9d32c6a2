package failure

import (
	"errors"
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

func (c *classified) apply(v *Verdict) {
	if c.severity != 0 {
		v.Severity = c.severity
	}
	if c.reason != "" {
		v.Reason = c.reason
	}
	if c.way != "" {
		v.Way = c.way
	}
	if c.retryAfter != 0 {
		v.RetryAfter = c.retryAfter
	}
}

// As returns err with what the options say about it, nil if err is nil. The text stays the same, and errors.Is and errors.As see through it.
// Options of an inner error that the outer one does not give anew are kept.
func As(err error, options ...Option) error {
	if err == nil {
		return nil
	}
	c := &classified{}
	if inner := (*classified)(nil); errors.As(err, &inner) {
		*c = *inner
	}
	c.err = err
	for _, o := range options {
		o(c)
	}
	return c
}

// OfClass says which class it is. Unknown classes are refused by a panic: a class is a constant of this package.
func OfClass(class Class) Option {
	if _, ok := rows[class]; !ok {
		panic("failure: there is no class " + string(class))
	}
	return func(c *classified) { c.class = class }
}

// WithSeverity says how bad it is.
func WithSeverity(severity condition.Severity) Option {
	return func(c *classified) { c.severity = severity }
}

// WithReason is the reason that conditions and events give, in upper camel case: "QuotaExceeded".
func WithReason(reason string) Option { return func(c *classified) { c.reason = reason } }

// WithWay says what a person can do about it.
func WithWay(way string) Option { return func(c *classified) { c.way = way } }

// RetryAfter says when it is tried again, whatever the backoff.
func RetryAfter(d time.Duration) Option { return func(c *classified) { c.retryAfter = d } }
