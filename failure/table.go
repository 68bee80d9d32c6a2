// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
)

// A Class is a kind of failure. Its text is the reason of conditions.
type Class string

// The classes, from what ends by itself to what does not.
const (
	// ClassCanceled is a reconcile that ended because the operator is stopping or is not the leader
	// any more. It says nothing about the object.
	ClassCanceled Class = "Canceled"
	// ClassConflict is a write to an object that another client has changed since it was read.
	ClassConflict Class = "Conflict"
	// ClassThrottled is a server that asks for fewer requests, and may have said until when.
	ClassThrottled Class = "Throttled"
	// ClassTransient is a failure of a network, a server or something unknown. The next try may
	// succeed.
	ClassTransient Class = "TemporaryError"
	// ClassNotFound is an object or a kind that is missing.
	ClassNotFound Class = "NotFound"
	// ClassForbidden is a request that the operator has no permission for.
	ClassForbidden Class = "Forbidden"
	// ClassInvalid is an object that the API server does not accept.
	ClassInvalid Class = "Invalid"
	// ClassTerminal is an error that the code which returned it marked as not worth retrying.
	ClassTerminal Class = "TerminalError"
	// ClassPanic is a bug in the operator.
	ClassPanic Class = "Panic"
)

// A Classification is what the table says about an error. The zero value is that of no error.
type Classification struct {
	Class    Class
	Severity condition.Severity
	// Reason is for conditions and events: the class, unless the error has one of its own.
	Reason  string
	Backoff Backoff
	// RetryAfter replaces the backoff: a throttling server asked for it, or [WithRetryAfter] set
	// it. Zero if neither did.
	RetryAfter time.Duration
	// Remedy is what a person can do about it, in a sentence for people who have never seen the
	// operator's code.
	Remedy string
}

// Silent reports whether a failure, after so many in a row, is not reported on the object, neither
// in a condition nor in an event. A canceled reconcile never is, and a conflict only if it
// persists.
func (c Classification) Silent(failures int) bool {
	return c.Class == "" || c.Class == ClassCanceled || c.Class == ClassConflict && failures < loudConflicts
}

// loudConflicts is the number of conflicts in a row from which they are reported.
const loudConflicts = 6

// A Backoff is how long to wait between tries.
type Backoff struct{ Initial, Max time.Duration }

// Delay returns how long to wait after so many failures in a row, at least one: Initial, doubled
// for each further one, at most Max, and then up to a tenth longer, so that what failed together is
// not retried together.
func (b Backoff) Delay(failures int) time.Duration {
	doubled := min(max(failures, 1)-1, 62) // no duration can be doubled more often
	d := max(0, time.Duration(min(float64(b.Max), float64(b.Initial)*math.Exp2(float64(doubled)))))
	return d + rand.N(d/10+1) //nolint:gosec // nothing secret
}

// A Table classifies errors. The zero value is the table of this package.
type Table struct {
	// ClassOf is asked before everything else about each error of a chain, from the outside in,
	// when joined errors have been taken apart (see [Causes]). It returns false for what it does
	// not know. What [Mark] sets besides the class still holds. If it panics, the error is a
	// ClassPanic.
	ClassOf func(error) (Class, bool)
	// Backoffs replace those of classes. A time that is zero stays as it is.
	Backoffs map[Class]Backoff
}

type row struct {
	severity condition.Severity
	backoff  Backoff
	remedy   string
}

var rows = map[Class]row{
	ClassCanceled:  {condition.SeverityInfo, Backoff{100 * time.Millisecond, time.Second}, "nothing to do: the operator was stopping, and continues when it is back"},
	ClassConflict:  {condition.SeverityInfo, Backoff{20 * time.Millisecond, 30 * time.Second}, "nothing to do: it is retried with the newer version"},
	ClassThrottled: {condition.SeverityInfo, Backoff{time.Second, 5 * time.Minute}, "the server asks for fewer requests: wait, or raise its limits"},
	ClassTransient: {condition.SeverityWarning, Backoff{100 * time.Millisecond, 5 * time.Minute}, "it is retried automatically; if it persists, check what the message names"},
	ClassNotFound:  {condition.SeverityWarning, Backoff{500 * time.Millisecond, 5 * time.Minute}, "create what is missing; a missing kind needs its CustomResourceDefinition"},
	ClassForbidden: {condition.SeverityError, Backoff{5 * time.Second, 10 * time.Minute}, "give the operator's ServiceAccount the permission that the message names"},
	ClassInvalid:   {condition.SeverityError, Backoff{5 * time.Second, 10 * time.Minute}, "change the spec so that the objects made from it are valid"},
	ClassTerminal:  {condition.SeverityError, Backoff{time.Minute, time.Hour}, "correct what the message names; a change of the object is reconciled at once"},
	ClassPanic:     {condition.SeverityError, Backoff{time.Second, 10 * time.Minute}, "this is a bug in the operator: report it with the stack from its log"},
}

// Classify is [Table.Classify] of the zero table.
func Classify(err error) Classification { return Table{}.Classify(err) }

// Classify classifies err. Of joined errors the worst counts, of those that are equally bad the
// first, but the delay is the shortest of all.
//
// In fmt.Errorf("%w: %w", ErrSync, err) the name says what was being done and not what failed: what
// errors.New made, or an error that is a string, does not count before another error of the same
// sentence. In errors.Join it is a failure like every other.
func (t Table) Classify(err error) Classification {
	var all Classification
	for _, cause := range causes(err, t.isName) {
		all = all.join(t.classifyCause(cause))
	}
	return all
}

// isName reports whether err is nothing but a name that a sentence begins with, such as ErrSync in
// fmt.Errorf("%w: %w", ErrSync, err): a plain text of which nothing more is known, in Classify
// either.
func (t Table) isName(err error) bool {
	if reflect.TypeOf(err) != nameType && reflect.TypeOf(err).Kind() != reflect.String {
		return false
	}
	_, known := t.ask(err)
	return !known && classOf(err) == ClassTransient && !unavailable(err)
}

var (
	nameType     = reflect.TypeOf(errors.New(""))
	sentenceType = reflect.TypeOf(fmt.Errorf("%w%w", errors.ErrUnsupported, errors.ErrUnsupported))
)

// join returns the classification of two errors. The zero value changes nothing.
//
// It is not the join of package outcome, where no time is the identity: a failure always has a
// delay, its backoff, so a RetryAfter of zero does not mean never but leaves the backoff in force.
// Only when both failures name a time does a time replace the backoff.
func (c Classification) join(d Classification) Classification {
	switch {
	case c.Class == "":
		return d
	case d.Class == "":
		return c
	}
	worst := c
	if d.rank() > c.rank() {
		worst = d
	}
	a, b := c.delays(), d.delays()
	worst.Backoff = Backoff{min(a.Initial, b.Initial), min(a.Max, b.Max)}
	worst.RetryAfter = min(c.RetryAfter, d.RetryAfter) // none if one of the two has none
	return worst
}

// rank orders classifications by severity. Errors that are not reported on the object rank lowest.
func (c Classification) rank() int {
	switch {
	case c.Severity > condition.SeverityInfo:
		return int(c.Severity) + 2
	case c.Class == ClassCanceled:
		return 0
	case c.Class == ClassConflict:
		return 1
	default:
		return 2
	}
}

// delays returns the backoff that is in force: a RetryAfter replaces the one of the class.
func (c Classification) delays() Backoff {
	if c.RetryAfter > 0 {
		return Backoff{c.RetryAfter, c.RetryAfter}
	}
	return c.Backoff
}

// Causes returns the errors that err joins, with errors.Join, several %w or as an aggregate of
// Kubernetes, and err alone if it joins none. An error that wraps joined errors is left out, unless
// it classifies them: an error with a [Mark], a terminal error and a panic stay whole.
func Causes(err error) []error { return causes(err, func(error) bool { return false }) }

// causes is Causes without those errors of a sentence that isName is true for and that stand before
// another.
func causes(err error, isName func(error) bool) []error {
	if err == nil {
		return nil
	}
	var all []error
	for _, cause := range joinedIn(err, isName) {
		all = append(all, causes(cause, isName)...)
	}
	if len(all) == 0 {
		return []error{err}
	}
	return all
}

// joinedIn returns what the first error of a chain that joins others joins, nil if none does before
// one that is whole.
func joinedIn(err error, isName func(error) bool) []error {
	for e := err; e != nil && !isWhole(e); e = errors.Unwrap(e) {
		switch x := e.(type) { //nolint:errorlint // the chain is walked node by node
		case interface{ Unwrap() []error }:
			all := x.Unwrap()
			for reflect.TypeOf(e) == sentenceType && len(all) > 1 && isName(all[0]) {
				all = all[1:]
			}
			return all
		case utilerrors.Aggregate:
			return x.Errors()
		}
	}
	return nil
}

// isWhole reports whether an error classifies all that it wraps.
func isWhole(err error) bool {
	if _, ok := err.(*classified); ok { //nolint:errorlint // the chain is walked node by node
		return true
	}
	_, ok := inherentClass(err)
	return ok
}

// inherentClass returns the class that an error has whatever it wraps, and whether it has one.
func inherentClass(err error) (Class, bool) {
	switch x := err.(type) { //nolint:errorlint // the chain is walked node by node
	case *ctrlkit.PanicError:
		return ClassPanic, true
	case interface{ Unwrap() []error }, utilerrors.Aggregate: // it is what its parts are
		return "", false
	case interface{ Is(error) bool }:
		return ClassTerminal, x.Is(reconcile.TerminalError(nil))
	}
	return "", false
}

// classifyCause classifies a single cause.
func (t Table) classifyCause(err error) Classification {
	own := markedIn(err)
	class, known := t.ask(err)
	if !known && own != nil && own.class != "" {
		class, known = own.class, true
	}
	if !known && own != nil {
		class, known = classAbove(err, own)
	}
	var c Classification
	switch {
	case known:
		c = t.ofClass(class, err)
	case own != nil: // it has no class of its own
		c = t.Classify(own.err)
	default:
		c = t.ofClass(classOf(err), err)
	}
	if own != nil {
		own.apply(&c)
	}
	return c
}

// ask returns what ClassOf says about the first error of a chain that it knows.
func (t Table) ask(err error) (Class, bool) {
	if t.ClassOf == nil {
		return "", false
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if class, ok := t.classOf(e); ok {
			if _, known := rows[class]; known {
				return class, true
			}
		}
	}
	return "", false
}

// classOf calls ClassOf. An error for which it panics is a bug in the operator.
func (t Table) classOf(err error) (class Class, ok bool) {
	defer func() {
		if value := recover(); value != nil {
			log.Log.Error(fmt.Errorf("panic: %v", value), "Observed a panic in ClassOf of the failure table", "of", err.Error(), "stack", string(debug.Stack()))
			class, ok = ClassPanic, true
		}
	}()
	return t.ClassOf(err)
}

// classAbove returns the inherent class of an error around own, and whether there is one.
func classAbove(err error, own *classified) (Class, bool) {
	for e := err; e != error(own); e = errors.Unwrap(e) {
		if class, ok := inherentClass(e); ok {
			return class, true
		}
	}
	return "", false
}

// ofClass returns the row of the table for err, which is of class.
func (t Table) ofClass(class Class, err error) Classification {
	r := rows[class]
	c := Classification{Class: class, Severity: r.severity, Reason: string(class), Backoff: r.backoff, Remedy: r.remedy}
	if class == ClassInvalid && IsTooLarge(err) {
		c.Remedy = tooLargeRemedy
	}
	if own := t.Backoffs[class]; own.Initial > 0 || own.Max > 0 {
		c.Backoff = own.over(r.backoff)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && class == ClassThrottled {
		c.RetryAfter = time.Duration(seconds) * time.Second
	}
	return c
}

// over returns b with the times that it lacks taken from c.
func (b Backoff) over(c Backoff) Backoff {
	if b.Initial <= 0 {
		b.Initial = c.Initial
	}
	if b.Max <= 0 {
		b.Max = max(c.Max, b.Initial)
	}
	return b
}

// classOf returns the class of an error that nothing else classifies.
func classOf(err error) Class {
	var panicked *ctrlkit.PanicError
	switch {
	case errors.As(err, &panicked):
		return ClassPanic
	case errors.Is(err, reconcile.TerminalError(nil)):
		return ClassTerminal
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	case apierrors.IsTooManyRequests(err):
		return ClassThrottled
	case apierrors.IsConflict(err):
		return ClassConflict
	case apierrors.IsNotFound(err), apierrors.IsGone(err), meta.IsNoMatchError(err):
		return ClassNotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return ClassForbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), IsTooLarge(err):
		return ClassInvalid
	default:
		return ClassTransient
	}
}

const tooLargeRemedy = "make what is written smaller, for example by dividing it: etcd takes objects of 1.5 MiB at most, unless it is configured otherwise"

// IsTooLarge reports whether a request was refused because of its size, by the API server or by its
// etcd, of which the API server passes on the text alone.
func IsTooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsInternalError(err) &&
		(strings.Contains(err.Error(), "etcdserver: request is too large") || strings.Contains(err.Error(), "trying to send message larger than max"))
}

// unavailable reports whether the server could not be reached or did not answer: it may have done
// what was requested, or not.
func unavailable(err error) bool {
	var timeout net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// RemedyOf returns what a person can do about failures of a class, in a sentence; empty for an
// unknown class.
func RemedyOf(class Class) string { return rows[class].remedy }
