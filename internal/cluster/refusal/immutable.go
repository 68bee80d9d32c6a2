// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package refusal

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Immutable reports whether the API server has refused a change because fields of the object can't
// be changed, and for no other reason. Three things have to hold:
//
//   - The validation of the API server speaks, and no admission policy or webhook, which may not want
//     the object to be deleted either, whatever their words are. The text of its answer begins with
//     the name of the object; theirs begins with "admission webhook", or says "is forbidden".
//   - Each cause is about a field that can't be changed. One that says "may only grow" stands in the
//     way of the change for a reason that a deletion would evade.
//   - A cause has the words of a built-in kind, or says without a condition that something is
//     immutable, as transition rules of custom kinds do: "field is immutable", "spec.class is
//     immutable once set". Of a rule without a message, `self == oldSelf` says it.
func Immutable(err error, kind schema.GroupKind, name string) bool {
	var answer apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &answer) {
		return false
	}
	status := answer.Status()
	if !strings.HasPrefix(status.Message, kind.String()+` "`+name+`" is invalid: `) || status.Details == nil {
		return false
	}
	for _, cause := range status.Details.Causes {
		if !saysImmutable(cause) {
			return false
		}
	}
	return len(status.Details.Causes) > 0
}

// saysImmutable reports whether a cause is about a field that can't be changed.
func saysImmutable(cause metav1.StatusCause) bool {
	detail := cause.Message // "Invalid value: "x": field is immutable"
	switch cause.Type {
	case metav1.CauseTypeForbidden: // which has no value, and may have a difference of several lines
		detail = strings.TrimPrefix(detail, "Forbidden: ")
	case metav1.CauseTypeFieldValueInvalid:
		if strings.HasSuffix(detail, ": failed rule: self == oldSelf") {
			return true
		}
		detail = detail[strings.LastIndex(detail, ": ")+len(": "):]
	default:
		return false
	}
	return builtIn.MatchString(detail) || unconditional.MatchString(detail) && !condition.MatchString(detail)
}

var (
	// builtIn matches what the validation of built-in kinds says of fields that can't be changed.
	builtIn = regexp.MustCompile("^(" + strings.Join([]string{
		"field is immutable( when `immutable` is set)?$",
		"may not change once set$",                                       // the addresses of a Service
		"may not be changed in an update",                                // a PriorityClass
		"cannot change roleRef$",                                         // a binding
		"updates to .* (are|is) forbidden",                               // a StatefulSet, a StorageClass
		"pod updates may not (change fields other than|add or remove) ",  //
		"(spec|spec.persistentvolumesource) is immutable after creation", // a claim, a volume
	}, "|") + ")")
	// unconditional matches what authors of custom kinds write.
	unconditional = regexp.MustCompile(`^[^:;,]*\b(is|are) immutable( (once|after) ((it is|it has been|being) )?(set|created|creation))?[.!]?$`)
	condition     = regexp.MustCompile(`(?i)\b(while|until|unless|during|if|when|except|only|before|not)\b`)
)

// Duplicates returns an error in words of its own if err says that a list has two items of the same
// key, and nil if it does not. Kinds whose lists have keys may accept that from clients that create
// or update, and never from one that applies: it can't be known which of the two an item is.
func Duplicates(err error) error {
	if err == nil {
		return nil
	}
	found := duplicate.FindStringSubmatch(err.Error())
	if found == nil {
		return nil
	}
	return &duplicateError{err, strings.TrimPrefix(found[1], ".") + " has two items with " + found[2]}
}

// RemedyDuplicates is what the author of an object can do about [Duplicates].
const RemedyDuplicates = "leave one of the two out: a list with keys is applied by them, so that each has one item"

var duplicate = regexp.MustCompile(`failed to create typed patch object [^)]*\): (?:errors:\s+)?(\.[^\n]*): duplicate entries for key \[([^\n]*)\]`)

type duplicateError struct {
	err  error
	text string
}

func (e *duplicateError) Error() string { return e.text }
func (e *duplicateError) Unwrap() error { return e.err }
