// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/references"
)

// Annotations by which people decide whose a resource is.
const (
	// AdoptFromAnnotation, on an object, has it take over the resource of an owner that is gone:
	// the UID that is stored with the resource; [FormerOwner]; or [NoOwner]. It takes nothing from
	// an object that exists.
	AdoptFromAnnotation = "external.ctrlkit.dev/adopt-from"

	// GiveToAnnotation, on the object that owns a resource, lets the object with this UID take it
	// over, whose IDAnnotation has to name it. From then on the giver leaves the resource alone, also
	// when it is deleted.
	GiveToAnnotation = "external.ctrlkit.dev/give-to"

	// FormerOwner stands for the UID that the object itself had before it was restored or cloned.
	// The cluster that it comes from must not manage the resource any more.
	FormerOwner = "former"

	// NoOwner says that a resource is taken over although it is not the one that was created for the
	// object: another client has created it since, under the same name.
	NoOwner = "none"
)

// A standing says whose a resource is, as far as the resource and the record show it.
type standing int

const (
	unowned  standing = iota // nothing shows an owner
	ours                     // our UID is stored with it, or none is and it was recorded for us
	others                   // the UID of another object is stored with it
	former                   // it was recorded for this object under another UID
	replaced                 // our UID was stored with it, and none is any more: it is another one
	given                    // the object has given it away
)

// An ownership decides for a session whose the resource is.
type ownership[T client.Object] struct{ *session[T] }

// standing returns whose the resource is that was observed.
func (s ownership[T]) standing() standing {
	own, owner, r := OwnerOf(s.req.Object), s.seen.Owner, s.record
	to := gaveTo(s.req.Object)
	recorded := r.uid // of whom the record is
	if recorded == "" || r.of != "" && r.of != fingerprint(s.id) {
		recorded = own
	}
	switch {
	case owner == own:
		return ours
	case owner != "" && owner == r.from && recorded == own:
		return ours // the system keeps the owner that it was adopted from
	case to != "" && (owner == "" || owner == to):
		return given
	case recorded != own && (owner == "" || owner == recorded):
		return former
	case owner != "":
		return others
	case r.of != "" && r.of != fingerprint(s.id):
		return unowned // the record is that of another resource
	case r.marked && (s.seen.State == UpToDate || s.seen.State == Drifted): // not all clients report the owner in other states
		return replaced
	case r.step == begun || r.step == created:
		return ours
	}
	return unowned
}

// claim makes a resource that exists that of the object, if it is, or may be taken over.
func (s ownership[T]) claim(ctx context.Context, known bool) error {
	obj := s.req.Object
	standing := s.standing()
	switch {
	case standing == ours:
		if !known {
			annotate(obj, IDAnnotation, s.id)
		} else if !s.options.Identity.class.chosen() && (s.record.step == begun || s.record.step == "") {
			s.setCreated() // a person has found what a process had begun to create, or whose annotations were removed
		}
		s.noteMark()
		return nil
	case standing == given:
		return s.givenAway()
	case standing == unowned && !known:
		if other, err := s.user(ctx); err != nil || other != nil {
			return s.belongsTo(other, err)
		}
		return s.foreign("it exists, and was not created for this object", fmt.Sprintf("choose another name, or have the object adopt it: set the annotation %s to %q", IDAnnotation, s.id))
	case standing == unowned:
		if other, err := s.user(ctx); err != nil || other != nil {
			return s.belongsTo(other, err)
		}
		s.adopt("")
		return nil
	}
	return s.takeOver(ctx, standing)
}

// takeOver adopts a resource that has, or had, another owner, if people have decided so on both
// sides.
func (s ownership[T]) takeOver(ctx context.Context, standing standing) error {
	obj, owner := s.req.Object, s.seen.Owner
	if owner == "" && standing == former {
		owner = s.record.uid
	}
	living, err := s.living(ctx, owner, false)
	if err != nil {
		return err
	}
	from := obj.GetAnnotations()[AdoptFromAnnotation]
	agreed := from == owner && owner != "" || from == FormerOwner && standing == former || from == NoOwner && standing == replaced
	switch {
	case living != nil && living.GetAnnotations()[GiveToAnnotation] == OwnerOf(obj):
	case living != nil:
		return s.belongsTo(living, nil)
	case !agreed:
		return s.ownedByTheDead(standing, owner)
	case s.req.APIReader != nil: // a cache may not have seen the owner yet
		if living, err := s.living(ctx, owner, true); err != nil || living != nil {
			return s.belongsTo(living, err)
		}
	}
	s.adopt(s.seen.Owner)
	return nil
}

// ownedByTheDead is the failure of an object whose resource has an owner that is not in the cluster.
func (s ownership[T]) ownedByTheDead(standing standing, owner string) error {
	word, why, when := owner, "it belongs to an object with the UID "+owner+", which is not in this cluster", "that object is gone for good, in every cluster"
	switch standing {
	case former:
		word, why = FormerOwner, "it belongs to this object under its former UID "+owner+": the object was restored, or copied"
		when = "the object with that UID is gone for good, in every cluster"
	case replaced:
		word, why, when = NoOwner, "it is not the one that was created for this object: another client has created it since", "it may be taken over"
	}
	return s.foreign(why, fmt.Sprintf("choose another name or id; or, if %s, set the annotation %s to %s", when, AdoptFromAnnotation, word))
}

// adopt records that the resource is that of the object from now on. Where the system stores owners,
// an update follows, which stores ours.
func (s ownership[T]) adopt(from string) {
	annotate(s.req.Object, IDAnnotation, s.id)
	s.record = record{step: created, at: time.Now(), token: s.record.token, uid: OwnerOf(s.req.Object), of: fingerprint(s.id), from: from}
	setRecord(s.req.Object, s.record)
	if from != "" || s.marks.Load() {
		s.seen.Drift = append(s.seen.Drift, "owner")
		if s.seen.State == UpToDate {
			s.seen.State = Drifted
		}
	}
}

// noteMark records that our UID is stored with a resource of a name that clients choose. A resource
// of that name without it is another one then.
func (s ownership[T]) noteMark() {
	if s.seen.Owner != "" {
		s.marks.Store(true)
	}
	named := s.options.Identity.class.chosen()
	if s.seen.Owner != OwnerOf(s.req.Object) || (!named || s.record.marked) && s.record.from == "" {
		return
	}
	if s.record.step != begun && s.record.step != created {
		s.record = record{step: created, at: time.Now()}
	}
	s.record.uid, s.record.of, s.record.from, s.record.marked = OwnerOf(s.req.Object), fingerprint(s.id), "", named
	setRecord(s.req.Object, s.record)
}

// check returns an error if a resource that was just created or changed is not ours: another
// client was faster.
func (s ownership[T]) check() error {
	if standing := s.standing(); s.seen.exists() && standing != ours {
		return s.foreign(fmt.Sprintf("it belongs to the object with the UID %q", s.seen.Owner), "choose another name or id")
	}
	s.noteMark()
	return nil
}

// mayDelete reports whether the resource of an object that is being deleted is its own. If it is not,
// it is left, and an event says so.
func (s ownership[T]) mayDelete() bool {
	obj, why := s.req.Object, ""
	switch standing := s.standing(); {
	case gaveTo(obj) != "":
		why = "it was given to the object with the UID " + gaveTo(obj)
	case standing == ours, standing == unowned && s.record.step == "" && IDOf(obj) != "" && s.req.WasClaimed(): // another client has removed the record
		return true
	case standing == unowned:
		why = "nothing shows that it was created for the object, or adopted"
	case standing == replaced:
		why = "it is not the one that was created for the object"
	default:
		why = "it belongs to an object with the UID " + s.seen.Owner
	}
	if IDOf(obj) != "" {
		s.req.Event(corev1.EventTypeWarning, ReasonLeft, "Delete", "The resource %s is left: %s", s.id, why)
		s.req.Logger.Info("The resource of a deleted object is left", "id", s.id, "reason", why)
	}
	return false
}

// user returns another object that uses the same resource of a system which stores no owners, nil if
// there is none.
func (s ownership[T]) user(ctx context.Context) (client.Object, error) {
	system := func(obj client.Object) string {
		if t, ok := obj.(T); ok && s.calls.System != nil {
			return s.calls.System(t)
		}
		return ""
	}
	return s.another(ctx, false, func(obj client.Object) bool {
		r, err := recordOf(obj)
		claimed := err == nil && (r.step == begun || r.step == created) && (r.uid == "" || r.uid == string(obj.GetUID()))
		return claimed && IDOf(obj) == s.id && system(obj) == system(s.req.Object) && obj.GetAnnotations()[GiveToAnnotation] != OwnerOf(s.req.Object)
	})
}

// living returns the object of the kind that has a UID, nil if there is none. Live asks the API server.
func (s ownership[T]) living(ctx context.Context, uid string, live bool) (client.Object, error) {
	if uid == "" {
		return nil, nil
	}
	return s.another(ctx, live, func(obj client.Object) bool { return obj.GetUID() == types.UID(uid) })
}

// another returns another object of the kind, nil if there is none. Live asks the API server, and
// shows only metadata.
func (s ownership[T]) another(ctx context.Context, live bool, is func(obj client.Object) bool) (client.Object, error) {
	var all []client.Object
	var err error
	if live {
		all, err = references.ListMetadata(ctx, s.req.APIReader, s.req.Client, s.req.Object)
	} else {
		all, err = references.List(ctx, s.req.Client, s.req.Object)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the owner of the resource: %w", err)
	}
	i := slices.IndexFunc(all, func(obj client.Object) bool { return obj.GetUID() != s.req.Object.GetUID() && is(obj) })
	if i < 0 {
		return nil, nil
	}
	return all[i], nil
}

// belongsTo is the failure of an object that names the resource of another object, or that of looking
// for one.
func (s ownership[T]) belongsTo(other client.Object, err error) error {
	if err != nil {
		return err
	}
	return s.foreign("it belongs to "+client.ObjectKeyFromObject(other).String(), "choose another name or id")
}

// foreign is the failure of an object whose resource is not its own. It may become its own without an
// event.
func (s ownership[T]) foreign(why, remedy string) error {
	if s.req.Conditions != nil {
		s.req.Conditions.MarkHealthy(ConditionFailed, ReasonNone, "") // the system has answered
	}
	err := failure.Mark(fmt.Errorf("the resource %q is not ours: %s", s.id, why), failure.WithClass(failure.ClassTerminal),
		failure.WithReason(ReasonForeign), failure.WithRetryAfter(s.poll(s.req.Object)))
	return remediable(err, remedy)
}

// givenAway is the wait of an object that has given its resource away.
func (s ownership[T]) givenAway() error {
	_, err := ctrlkit.WaitFor(fmt.Sprintf("nothing: its resource %s was given to the object with the UID %s; delete this object", s.id, gaveTo(s.req.Object)))
	return err
}

// gaveTo returns the UID of the object to which one has given its resource, empty if it has not.
func gaveTo(obj client.Object) string {
	if to := obj.GetAnnotations()[GiveToAnnotation]; to != OwnerOf(obj) {
		return to
	}
	return ""
}

// fingerprint returns some bits of an id, which may have spaces.
func fingerprint(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}
