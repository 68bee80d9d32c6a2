package failure

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
)

// A Class is a kind of failure. Its text is the reason of conditions.
type Class string

// The classes, from what passes by itself to what does not.
const (
	// Cancelled: the operator is stopping, or has lost its lease. The object has nothing to do with it.
	Cancelled Class = "Cancelled"
	// Conflict: somebody else has changed the object since it was read.
	Conflict Class = "Conflict"
	// Throttled: the server wants less, and may have said when it is ready for more.
	Throttled Class = "Throttled"
	// Transient: a network, a server or something unknown fails; it may work the next time.
	Transient Class = "TemporaryError"
	// NotFound: something is missing, an object or a kind.
	NotFound Class = "NotFound"
	// Forbidden: the operator may not.
	Forbidden Class = "Forbidden"
	// Invalid: the API server does not accept what the operator wants to write.
	Invalid Class = "Invalid"
	// Terminal: the code that failed has said that trying again is of no use.
	Terminal Class = "TerminalError"
	// Panic: the operator has a bug.
	Panic Class = "Panic"
)

// A Verdict is what the table says about an error. The zero value is about no error.
type Verdict struct {
	Class    Class
	Severity condition.Severity
	// Reason is for conditions and events: the class, unless the error has one of its own.
	Reason  string
	Backoff Backoff
	// RetryAfter is what the server asked for; zero if it did not.
	RetryAfter time.Duration
	// Way is the way out, in a sentence for people who have never seen the operator's code.
	Way string
}

// Silent says that a failure after so many in a row is none of the object's business: no condition and no event tell of it. A conflict
// is, unless it does not go away.
func (v Verdict) Silent(failures int) bool {
	return v.Class == "" || v.Class == Cancelled || v.Class == Conflict && failures < loudConflicts
}

// loudConflicts is how many conflicts in a row are one too many.
const loudConflicts = 6

// A Backoff is how long to wait between tries.
type Backoff struct{ First, Most time.Duration }

// Delay returns how long to wait after so many failures in a row, at least one: First, doubled for each further one, at most Most, and then up to a
// tenth longer, so that what failed together does not come back together.
func (b Backoff) Delay(failures int) time.Duration {
	d := time.Duration(min(float64(b.Most), float64(b.First)*math.Exp2(float64(max(failures, 1)-1))))
	return d + rand.N(d/10+1) //nolint:gosec // nothing secret
}

// A Table judges errors. The zero value is the table of this package.
type Table struct {
	// Classify is asked before everything else about each error of a tree, from the outside in. It returns false for what it does not know.
	Classify func(error) (Class, bool)
	// Backoffs replace those of classes.
	Backoffs map[Class]Backoff
}

type row struct {
	severity condition.Severity
	backoff  Backoff
	way      string
}

var rows = map[Class]row{
	Cancelled: {condition.Info, Backoff{100 * time.Millisecond, time.Second}, "nothing is to be done: the operator was stopping, and goes on when it is back"},
	Conflict:  {condition.Info, Backoff{20 * time.Millisecond, 30 * time.Second}, "nothing is to be done: the newer version is read, and it is tried again"},
	Throttled: {condition.Info, Backoff{time.Second, 5 * time.Minute}, "the server asks for fewer requests: wait, or raise its limits"},
	Transient: {condition.Warning, Backoff{100 * time.Millisecond, 5 * time.Minute}, "it is tried again by itself; if it stays, look at what the message names"},
	NotFound:  {condition.Warning, Backoff{500 * time.Millisecond, 5 * time.Minute}, "make what is missing; a missing kind needs its CustomResourceDefinition"},
	Forbidden: {condition.Error, Backoff{5 * time.Second, 10 * time.Minute}, "give the operator's ServiceAccount the permission that the message names"},
	Invalid:   {condition.Error, Backoff{5 * time.Second, 10 * time.Minute}, "change the spec, so that what follows from it is valid"},
	Terminal:  {condition.Error, Backoff{time.Minute, time.Hour}, "change what the message names; a change of the object is tried at once"},
	Panic:     {condition.Error, Backoff{time.Second, 10 * time.Minute}, "this is a bug of the operator: report it with the stack from its log"},
}

// Judge is [Table.Judge] of the zero table.
func Judge(err error) Verdict { return Table{}.Judge(err) }

// Judge says what kind of failure err is. Of joined errors the worst counts, but it is tried again as soon as the soonest of them wants, and the
// shortest time that a server asked for is only kept if no other error is tried again earlier.
func (t Table) Judge(err error) Verdict {
	var worst Verdict
	for _, leaf := range Causes(err) {
		v := t.judge(leaf)
		if worst.Class == "" {
			worst = v
			continue
		}
		first, most, after := soonest(worst, v)
		if v.Severity > worst.Severity || worst.Class == Cancelled || worst.Class == Conflict && v.Class != Cancelled {
			worst = v
		}
		worst.Backoff, worst.RetryAfter = Backoff{first, most}, after
	}
	return worst
}

func soonest(a, b Verdict) (first, most, after time.Duration) {
	first, most = min(a.Backoff.First, b.Backoff.First), min(a.Backoff.Most, b.Backoff.Most)
	if a.RetryAfter > 0 && b.RetryAfter > 0 {
		after = min(a.RetryAfter, b.RetryAfter)
	}
	return first, most, after
}

// Causes returns the errors that err joins, and err alone if it joins none. What wraps a joined error is left out.
func Causes(err error) []error {
	if err == nil {
		return nil
	}
	for e := err; e != nil; {
		switch x := e.(type) { //nolint:errorlint // the tree is walked node by node
		case interface{ Unwrap() []error }:
			var all []error
			for _, cause := range x.Unwrap() {
				all = append(all, Causes(cause)...)
			}
			if len(all) == 0 {
				return []error{err}
			}
			return all
		case *classified:
			return []error{err} // somebody has judged the whole
		case interface{ Unwrap() error }:
			e = x.Unwrap()
		default:
			return []error{err}
		}
	}
	return []error{err}
}

func (t Table) judge(err error) Verdict {
	class, own := t.classify(err)
	r := rows[class]
	v := Verdict{Class: class, Severity: r.severity, Reason: string(class), Backoff: r.backoff, Way: r.way}
	if b, ok := t.Backoffs[class]; ok {
		v.Backoff = b
	}
	if own != nil {
		own.apply(&v)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && class == Throttled {
		v.RetryAfter = time.Duration(seconds) * time.Second
	}
	return v
}

func (t Table) classify(err error) (Class, *classified) {
	if t.Classify != nil {
		if class, ok := t.Classify(err); ok {
			if _, known := rows[class]; known {
				return class, nil
			}
		}
	}
	var own *classified
	if errors.As(err, &own) && own.class != "" {
		return own.class, own
	}
	return classOf(err), own
}

// classOf says what can be seen in the error.
func classOf(err error) Class {
	var panicked *ctrlkit.PanicError
	switch {
	case errors.As(err, &panicked):
		return Panic
	case errors.Is(err, reconcile.TerminalError(nil)):
		return Terminal
	case errors.Is(err, context.Canceled):
		return Cancelled
	case apierrors.IsTooManyRequests(err):
		return Throttled
	case apierrors.IsConflict(err):
		return Conflict
	case apierrors.IsNotFound(err), apierrors.IsGone(err), meta.IsNoMatchError(err):
		return NotFound
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		return Forbidden
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return Invalid
	default:
		return Transient
	}
}

// Unavailable says whether the server could not be reached or did not answer: it may have done what it was asked for, or not.
func Unavailable(err error) bool {
	var timeout net.Error
	return apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// WayOut says what a person can do about failures of a class, in a sentence; empty for an unknown one.
func WayOut(class Class) string { return rows[class].way }
