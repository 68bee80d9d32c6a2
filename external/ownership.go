// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

// Annotations by which people say whose a resource is to be. They are wishes: nothing follows from
// those of the taker alone.
const (
	// adoptFromAnnotation, on an object, has it take over the resource of an owner that is gone: the UID
	// of that owner; formerOwner; or noOwner. It takes nothing from an object that exists, and
	// needs the right of Options.Adopt.
	adoptFromAnnotation = "external.ctrlkit.dev/adopt-from"

	// giveToAnnotation, on the object that owns a resource, lets the object with this UID take it over,
	// whose IDAnnotation has to name it. From then on the giver leaves the resource alone, also when it
	// is deleted. To take it back, remove it before the other object has taken the resource.
	giveToAnnotation = "external.ctrlkit.dev/give-to"

	// adoptAnnotation, on a Namespace, lists the ids that its objects may adopt: see Options.Adopt. Each
	// is a pattern, in which * stands for any text and ? for a character; they are separated by commas
	// or lines.
	adoptAnnotation = "external.ctrlkit.dev/adopt"

	// formerOwner stands for the UID that the object itself had before it was restored or cloned.
	// The cluster that it comes from must not manage the resource any more.
	formerOwner = "former"

	// noOwner says that a resource is taken over although it is not the one that was created for the
	// object: another client has created it since, under the same name.
	noOwner = "none"
)

// An ownership decides for a session whose the resource is, and sees to it that what proves it is
// written. See decide.
type ownership[T client.Object] struct{ *session[T] }

// claim decides, in the step that records intents, about the resource that was observed. What is
// to be claimed is claimed when the finalizer is written: see secure.
func (s ownership[T]) claim(ctx context.Context) error {
	f, err := survey[T](s).know(ctx, false)
	if err != nil {
		return err
	}
	s.facts, s.decision = f, decide(&f.knowledge)
	switch s.decision.next {
	case nextManage:
		s.keep()
		return s.ungive(ctx)
	case nextClaim, nextAdopt, nextTransfer:
		annotate(s.req.Object, IDAnnotation, s.id)
		return nil
	case nextCreate, nextAbsent, nextShow:
		return nil
	case nextWait:
		return refusals[T](s).unproven()
	case nextGive:
		return s.give(ctx)
	}
	return refusals[T](s).refusal()
}

// secure makes the resource that of the object, if that was decided. Another object may have been faster
// since.
func (s ownership[T]) secure(ctx context.Context) error {
	switch s.decision.next {
	case nextClaim, nextAdopt, nextTransfer:
	default:
		return s.confirm(ctx)
	}
	if err := s.req.EnsureFresh(ctx); err != nil { // an object that is gone must not own anything
		return err
	}
	from := ""
	if s.decision.next != nextClaim {
		from = s.seen.Owner
	}
	if !s.options.StoresOwner {
		if err := s.register(ctx, from); err != nil {
			return err
		}
	}
	if s.decision.next == nextClaim || !s.options.StoresOwner && s.seen.Owner == "" { // an update would store none
		s.keep()
		return nil
	}
	s.seen.Drift = append(s.seen.Drift, "owner") // an update stores it
	if s.seen.State == UpToDate {
		s.seen.State = Drifted
	}
	return nil
}

// confirm reads a claim that this process remembers, before the resource is changed or created once
// more: another process of the operator may have let the object to which it was given take it
// since.
func (s ownership[T]) confirm(ctx context.Context) error {
	if s.options.StoresOwner || s.claims.of(s.req.Object.GetUID()) == nil || s.seen.State != Drifted && s.seen.State != Absent {
		return nil
	}
	_, err := s.held(ctx)
	return err
}

// held reads the claim of the resource, which the object has. It is an error if it has it no more:
// to decide again is right.
func (s ownership[T]) held(ctx context.Context) (*claim, error) {
	r, own := s.registrar(), s.req.Object.GetUID()
	c, err := r.get(ctx, s.key())
	switch {
	case err != nil:
		return nil, err
	case c == nil || c.uid != own:
		r.forget(own)
		return nil, failure.Mark(fmt.Errorf("the object has the claim of the resource %q no more", s.id), failure.WithClass(failure.ClassConflict))
	}
	r.remember(c)
	return c, nil
}

// register writes the claim of the object: a new one, or that of a former holder. Before Create is
// called, From is empty.
func (s ownership[T]) register(ctx context.Context, from string) error {
	r, c := s.registrar(), s.facts.claim
	if c != nil && c.uid != s.req.Object.GetUID() {
		former := c.uid
		c.holder, c.from, c.givenTo, c.ending, c.since = s.holder(), from, "", time.Time{}, time.Now()
		if err := r.update(ctx, c); err != nil {
			return err
		}
		r.forget(former)
		return nil
	}
	done, err := r.create(ctx, &claim{resourceKey: s.key(), holder: s.holder(), from: from, since: time.Now()})
	if err != nil || done {
		return err
	}
	return s.contend(ctx)
}

// ensureClaim claims the resource of an object that is about to be created, or that the system has just
// made, unless it has the claim.
func (s ownership[T]) ensureClaim(ctx context.Context) error {
	if h := s.claims.of(s.req.Object.GetUID()); s.options.StoresOwner || h != nil && h.resourceKey == s.key() {
		return nil
	}
	s.facts.claim = nil
	return s.register(ctx, "")
}

// contend decides once more, because there is a claim that was not there a moment ago: that of another
// object, or ours, if the answer to its creation was lost.
func (s ownership[T]) contend(ctx context.Context) error {
	f, err := survey[T](s).know(ctx, true)
	if err != nil {
		return err
	}
	if f.knowledge.claim == claimMine {
		s.facts = f
		return nil
	}
	s.facts, s.decision = f, decide(&f.knowledge)
	if s.decision.next != nextRefuse {
		s.decision = decision{nextRefuse, whyLiving} // what else follows is for the next reconcile
	}
	return refusals[T](s).refusal()
}

// keep notes in the annotations what was found out, so that they are a help after the process has
// ended.
func (s ownership[T]) keep() {
	obj, chosen := s.req.Object, s.options.Identity.class.chosen()
	s.memory.change(obj.GetUID(), func(a *attempt) { a.proven = s.id })
	if IDOf(obj) == "" {
		annotate(obj, IDAnnotation, s.id)
	}
	if r := s.record; r.step != created && (!chosen || r.step != begun) || !r.isOf(obj, s.id) {
		s.setCreated()
	}
}

// ungive takes back what was given and not taken.
func (s ownership[T]) ungive(ctx context.Context) error {
	if h := s.claims.of(s.req.Object.GetUID()); s.options.StoresOwner || h == nil || !h.given {
		return nil
	}
	return s.changeClaim(ctx, func(c *claim) { c.givenTo = "" })
}

// give lets the object that giveToAnnotation names take the resource, and is the wait of the giver.
func (s ownership[T]) give(ctx context.Context) error {
	if s.facts.knowledge.claim == claimMine {
		to := gaveTo(s.req.Object)
		if err := s.changeClaim(ctx, func(c *claim) { c.givenTo = to }); err != nil {
			return err
		}
	}
	return ctrlkit.Wait(fmt.Sprintf("nothing: its resource %s was given to the object with the UID %s; delete this object", s.id, gaveTo(s.req.Object)))
}

// changeClaim changes the claim of the object, if that changes anything.
func (s ownership[T]) changeClaim(ctx context.Context, change func(c *claim)) error {
	c, err := s.held(ctx)
	if err != nil {
		return err
	}
	before := *c
	if change(c); *c == before {
		return nil
	}
	return s.registrar().update(ctx, c)
}

// endClaim removes the claim of an object that has no resource any more, or leaves it.
func (s ownership[T]) endClaim(ctx context.Context) error {
	if s.options.StoresOwner {
		return nil
	}
	r, p := s.registrar(), s.key()
	if h := r.of(s.req.Object.GetUID()); h != nil {
		p = h.resourceKey
	}
	c, err := r.get(ctx, p)
	if err != nil || c == nil || c.uid != s.req.Object.GetUID() {
		return err
	}
	return r.end(ctx, c)
}

// check returns an error if a resource that was just created or changed is not ours: another client was
// faster.
func (s ownership[T]) check(ctx context.Context) error {
	f, err := survey[T](s).know(ctx, false)
	if err != nil {
		return err
	}
	s.facts, s.decision = f, decide(&f.knowledge)
	switch s.decision.next {
	case nextManage:
		s.keep()
	case nextRefuse, nextAdopt, nextTransfer, nextShow:
		s.decision.next = nextRefuse
		return refusals[T](s).refusal()
	}
	return nil
}

// mayDelete reports whether the resource of an object that is being deleted is its own. If it is not,
// it is left, and an event says so. What is deleted is marked as ending first: from then on no other
// object can take it over.
func (s ownership[T]) mayDelete(ctx context.Context) (bool, error) {
	f, err := survey[T](s).know(ctx, true)
	if err != nil {
		return false, err
	}
	f.knowledge.deleting = true
	s.facts, s.decision = f, decide(&f.knowledge)
	switch {
	case s.decision.next == nextWait:
		return false, refusals[T](s).unproven()
	case s.decision.next == nextLeave:
		return false, s.leave(ctx)
	case s.decision.next == nextDelete && f.claim != nil && f.claim.ending.IsZero():
		f.claim.ending = time.Now()
		return true, s.registrar().update(ctx, f.claim)
	}
	return true, nil
}

// leave says that the resource of a deleted object is left, and whose it is. A claim that is given away
// stays, for the one who takes it.
func (s ownership[T]) leave(ctx context.Context) error {
	obj := s.req.Object
	if s.seen.exists() && (IDOf(obj) != "" || s.facts.knowledge.claim == claimMine) {
		why := refusals[T](s).whyLeft()
		s.req.Event(corev1.EventTypeWarning, reasonLeft, "Delete", "The resource %s is left: %s", s.id, why)
		s.req.Logger.Info("The resource of a deleted object is left", "id", s.id, "reason", why)
	}
	if s.decision.why == whyGives && s.facts.knowledge.claim == claimMine {
		to := gaveTo(obj)
		return s.changeClaim(ctx, func(c *claim) { c.givenTo = to })
	}
	return s.endClaim(ctx)
}

// look decides about the resource of an object that may not change it: what is of another object is not
// shown.
func (s ownership[T]) look(ctx context.Context) error {
	f, err := survey[T](s).know(ctx, false)
	if err != nil {
		return err
	}
	s.facts, s.decision = f, decide(&f.knowledge)
	switch s.decision.next {
	case nextRefuse:
		return refusals[T](s).refusal()
	case nextWait:
		return refusals[T](s).unproven()
	}
	return nil
}

// release gives up the resource of an object that leaves it: the stored owner first, and then the claim.
func (s ownership[T]) release(ctx context.Context) error {
	err := s.find(ctx)
	if err == nil {
		s.facts, err = survey[T](s).know(ctx, true)
	}
	k := &s.facts.knowledge
	switch releaser, ok := s.client.(Releaser[T]); {
	case err == nil && k.gives:
		s.decision = decision{nextLeave, whyGives}
		return s.leave(ctx)
	case err == nil && ok && k.resource == isThere && k.mine() && !k.foreign():
		err = s.call(ctx, "release", func(ctx context.Context) error { return releaser.Release(ctx, s.req.Object, s.id) })
	}
	return errors.Join(err, s.endClaim(ctx))
}

// holder returns the object as the holder of a claim.
func (s ownership[T]) holder() holder { return holderFrom(s.req.Object, s.kindOf(s.req.Object)) }

// gaveTo returns the UID of the object to which one has given its resource, empty if it has not.
func gaveTo(obj client.Object) string {
	if to := obj.GetAnnotations()[giveToAnnotation]; to != OwnerOf(obj) {
		return to
	}
	return ""
}

// fingerprint returns some bits of an id, which may have spaces.
func fingerprint(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}
