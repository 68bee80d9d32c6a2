// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
)

// A Decision is what an operator may do for an object, by [Resolve]. The zero value allows nothing,
// and its deletion is blocked.
type Decision struct {
	// The parts, and where each was found. The value of an invalid part is empty.
	reconciled choice[Reconcile]
	reclaimed  choice[Reclaim]
	allowed    choice[Verbs]

	request  Request
	resolved bool
	unread   string // the namespace that the decision depends on and that is not known
	invalid  []*invalidError
}

// A choice is one part of a decision.
type choice[V any] struct {
	value  V
	source source
}

// A source is where a part of a decision was found.
type source struct {
	origin origin
	// namespace is its name if a namespace has it.
	namespace string
}

// An origin is the kind of a source.
type origin int

// The origins, in the order in which they are asked. The zero value is none.
const (
	originObject origin = iota + 1
	originSpec
	originNamespace
	originOperator
)

// String returns "the object", "the spec", "namespace prod" or "the operator".
func (s source) String() string {
	switch s.origin {
	case originObject:
		return "the object"
	case originSpec:
		return "the spec"
	case originNamespace:
		return "namespace " + s.namespace
	case originOperator:
		return "the operator"
	default:
		return "nowhere"
	}
}

// describe returns what a source says, for people.
func (s source) describe(annotation, value string) string {
	switch s.origin {
	case originOperator:
		return fmt.Sprintf("the operator's default for %s is %s", annotation, quote(value))
	case originSpec:
		return fmt.Sprintf("the spec says %s for %s", quote(value), annotation)
	}
	return fmt.Sprintf("annotation %s of %s is %s", annotation, s, quote(value))
}

// A Deletion is what happens when an object is deleted.
type Deletion int

// The deletions. The zero value is the one that does nothing that can't be undone.
const (
	// DeletionBlocked: nothing. The finalizer stays, and the object with it, until a person has
	// corrected what is invalid.
	DeletionBlocked Deletion = iota
	// DeletionDetach: the finalizer is removed, and nothing is deleted.
	DeletionDetach
	// DeletionDelete: what the object stands for is deleted, then the finalizer is removed.
	DeletionDelete
)

// String returns "blocked", "detach" or "delete".
func (d Deletion) String() string {
	switch d {
	case DeletionDetach:
		return "detach"
	case DeletionDelete:
		return "delete"
	default:
		return "blocked"
	}
}

// The reasons of [Decision.Reason].
const (
	reasonManaged          = "Managed"
	reasonDetachOnDelete   = "DetachOnDelete"
	reasonRestricted       = "Restricted"
	reasonSkipped          = "Skipped"
	reasonInvalidPolicy    = "InvalidPolicy"
	reasonNamespaceUnknown = "NamespaceUnknown"
)

// ErrNamespaceUnknown is the error of a decision for which the namespace was needed and not given.
// Trying again resolves it.
var ErrNamespaceUnknown = errors.New("its annotations are not known")

// Allows reports whether the operator may do all that verbs name, and at least one thing.
//
//   - An invalid decision allows to observe.
//   - So does reconcile: skip.
//   - A resource that stays when the object is deleted may not be deleted to be replaced either.
func (d Decision) Allows(verbs Verbs) bool {
	for v := VerbObserve; v <= VerbLateInitialize; v <<= 1 {
		if verbs&v != 0 && d.Refusal(v) != "" {
			return false
		}
	}
	return AllVerbs.Has(verbs)
}

// OnDeletion returns what happens when the object is deleted. The resource that it stands for is
// deleted only if all three parts say so: reconcile is manage, reclaim is delete, and delete is
// allowed.
func (d Decision) OnDeletion() Deletion {
	switch {
	case !d.resolved || d.Err() != nil:
		return DeletionBlocked
	case d.Allows(VerbDelete):
		return DeletionDelete
	default:
		return DeletionDetach
	}
}

// Refusal returns why one verb is not allowed: `annotation policy.ctrlkit.dev/reconcile of
// namespace prod is "skip"`. It is empty if the verb is allowed.
func (d Decision) Refusal(verb Verbs) string {
	switch {
	case !d.resolved:
		return "no policy was resolved"
	case verb == VerbObserve:
		return ""
	case d.Err() != nil:
		return d.Err().Error()
	case d.reconciled.value == ReconcileSkip:
		return d.reconcile()
	case !d.allowed.value.Has(verb):
		return d.allow()
	case verb != VerbDelete:
		return ""
	case d.reconciled.value == ReconcileDetachOnDelete:
		return d.reconcile()
	case d.reclaimed.value == ReclaimRetain:
		return d.reclaim()
	}
	return ""
}

func (d Decision) reconcile() string {
	return d.reconciled.source.describe(ReconcileAnnotation, string(d.reconciled.value))
}

func (d Decision) reclaim() string {
	return d.reclaimed.source.describe(ReclaimAnnotation, string(d.reclaimed.value))
}

func (d Decision) allow() string {
	return d.allowed.source.describe(AllowAnnotation, d.allowed.value.String())
}

// Err returns an error that names each value that a person has to correct, nil if there is none. It
// is [ErrNamespaceUnknown] if the namespace was needed and not given.
func (d Decision) Err() error {
	var all joined
	if d.unread != "" {
		all = append(all, fmt.Errorf("namespace %s was not read: %w", d.unread, ErrNamespaceUnknown))
	}
	for _, e := range d.invalid {
		all = append(all, e)
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// joined are errors on one line, as a condition needs them.
type joined []error

func (j joined) Error() string {
	texts := make([]string, len(j))
	for i, err := range j {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (j joined) Unwrap() []error { return j }

// Remedy returns what a person can do about an invalid decision, empty if there is nothing to do.
func (d Decision) Remedy() string {
	for _, e := range d.invalid {
		switch e.source.origin {
		case originObject, originNamespace:
			return "correct the annotation, or remove it"
		case originSpec:
			return "correct the spec, or give the object the annotation"
		}
	}
	if len(d.invalid) > 0 {
		return "correct the configuration of the operator, or give the object the annotation"
	}
	return ""
}

// Reason returns the reason of a condition that shows the decision.
func (d Decision) Reason() string {
	switch {
	case len(d.invalid) > 0 || !d.resolved:
		return reasonInvalidPolicy
	case d.unread != "":
		return reasonNamespaceUnknown
	case d.reconciled.value == ReconcileSkip:
		return reasonSkipped
	case d.allowed.value != AllVerbs:
		return reasonRestricted
	case d.OnDeletion() == DeletionDetach:
		return reasonDetachOnDelete
	default:
		return reasonManaged
	}
}

// Message returns the message of a condition that shows the decision: what is not done, and which
// annotation of what says so. It is empty if everything is done. The same annotations have the same
// message.
func (d Decision) Message() string {
	switch {
	case !d.resolved:
		return "no policy was resolved: nothing is created, updated or deleted, and a deletion waits"
	case d.Err() != nil:
		text := d.Err().Error() + ": nothing is created, updated or deleted, and a deletion waits"
		if remedy := d.Remedy(); remedy != "" {
			text += "; " + remedy
		}
		return text
	case d.reconciled.value == ReconcileSkip:
		return d.reconcile() + ": the status is refreshed, and nothing is created, updated or deleted"
	}
	var parts []string
	if missing := (AllVerbs &^ d.allowed.value).names(); len(missing) > 0 {
		parts = append(parts, fmt.Sprintf("%s: not allowed: %s", d.allow(), strings.Join(missing, ", ")))
	}
	if d.OnDeletion() == DeletionDetach {
		parts = append(parts, d.detaches())
	}
	return strings.Join(parts, "; ")
}

// detaches says that what the object stands for stays, and why, also if another part says that it
// is deleted.
func (d Decision) detaches() string {
	text := "the deletion of the object deletes nothing else"
	if why := d.Refusal(VerbDelete); why != d.allow() {
		text = why + ": " + text
	}
	if d.reclaimed.value == ReclaimDelete && d.reclaimed.source.origin != originOperator {
		text += ", although " + d.reclaim()
	}
	return text
}
