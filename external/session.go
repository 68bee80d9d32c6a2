// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/internal/engine/answer"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// A session is one reconcile of one resource.
type session[T client.Object] struct {
	*external[T]
	req    *step.Request[T]
	client Client[T]

	id     string // empty if it is not known
	first  bool   // nothing shows that the object was ever reconciled before
	found  bool   // the system has said that the resource with the id was made for the object
	gone   string // the id of the resource that another client has deleted
	record record // as it was when the resource was observed
	before record // what this process knew before it read the annotations
	seen   Observation
	at     time.Time // when seen was asked for; zero before that

	facts    facts // whose the resource is
	decision decision

	changed *journal.Changed // what was called and not yet observed
	made    bool             // the resource was created or updated
	begun   *report          // the first call of its kind, and not yet reported
}

// close releases the client, if it can be closed.
func (s *session[T]) close() error {
	if c, ok := s.client.(io.Closer); ok {
		s.client = nil
		return c.Close()
	}
	return nil
}

// call calls the system.
func (s *session[T]) call(ctx context.Context, what string, call func(ctx context.Context) error) error {
	made := false
	err := s.calls.do(ctx, s.req.Object, what, func(ctx context.Context) error {
		made = true // no limit has prevented it
		return reporter[T]{s}.call(what, call)(ctx)
	})
	if made && (what == "release" || changes[what] != "") {
		noteChange(ctx, s, nil)
		s.made = true
		s.changed = &journal.Changed{Step: journal.StepFromContext(ctx), Verb: what, ID: s.id, Drift: s.seen.Drift, Before: s.seen.shown(), Err: err}
	}
	if err == nil {
		return nil
	}
	noteChange(ctx, s, nil)
	err = fmt.Errorf("%s: %w", what, err)
	switch waits := ctrlkit.Waits(err); {
	case s.seen.State != 0:
		s.mark()
	case len(waits) > 0:
		markNotObserved(s.req.Conditions, waits[0].For)
	}
	markFailed(s.req, what, err)
	return err
}

// noteChange notes what was called in the journal, with what was seen of the resource after it.
func noteChange[T client.Object](ctx context.Context, s *session[T], after *Observation) {
	run := journal.RunFromContext(ctx)
	if s.changed == nil || run == nil {
		return
	}
	if s.changed.ID = cmp.Or(s.changed.ID, s.id); after != nil {
		s.changed.After = after.shown()
	}
	run.Note(ctx, *s.changed)
	s.changed = nil
}

// find finds out the id of the resource, and observes it.
func (s *session[T]) find(ctx context.Context) (err error) {
	obj := s.req.Object
	s.before = s.memory.last(obj.GetUID())
	if s.record, err = recordOf(obj); err == nil {
		_, err = pollOf(obj)
	}
	if err != nil {
		return failure.Terminal(err, reasonWrongAnnotation, "")
	}
	r := recollection[T]{s}
	s.first = r.isFirst()
	r.present()
	r.recall()
	r.readClaimed()
	if s.id == "" {
		if err = s.options.Identity.class.locate(ctx, s); err != nil {
			return err
		}
	}
	r.missRecord()
	if s.id == "" {
		s.seen = Observation{State: Absent}
		return nil
	}
	if seen := s.memory.takeFresh(obj.GetUID()); seen != nil && s.req.OnlySaved() && time.Since(seen.at) < s.poll(obj)/10 {
		s.seen, s.at = seen.Observation, seen.at // the writes of the reconcile that saw it have triggered this one
		return nil
	}
	return s.observe(ctx)
}

// observe observes the resource.
func (s *session[T]) observe(ctx context.Context) error {
	var seen Observation
	err := s.call(ctx, "observe", func(ctx context.Context) (err error) {
		s.at = time.Now()
		seen, err = s.client.Observe(ctx, s.req.Object, s.id)
		return err
	})
	if err != nil {
		return err
	}
	if seen.State != Absent {
		s.memory.change(s.req.Object.GetUID(), func(a *attempt) { a.seen = true })
	}
	noteChange(ctx, s, &seen)
	if s.seen = seen; seen.State <= 0 || int(seen.State) >= len(stateNames) {
		return failure.Mark(fmt.Errorf("observe of %T has returned no state: this is a bug in the operator", s.client), failure.WithClass(failure.ClassTerminal))
	}
	return nil
}

// recent reports whether the resource was created so recently that the system may not show it. One
// that was never seen is given more time, and the more, the more creations were not seen one after
// the other: reads of the system may lag more than Options.Visible says.
func (s *session[T]) recent() bool {
	if s.record.step != created {
		return false
	}
	atMost := s.options.Visible
	if !s.memory.get(s.req.Object.GetUID()).seen {
		atMost = min(max(atMost, unseen)<<min(s.record.unseen, 16), max(atMost, longestUnseen))
	}
	if s.at.IsZero() {
		return age(s.record.at) < atMost
	}
	return s.at.Sub(s.record.at)-time.Second < atMost // a write may have taken long since
}

const (
	unseen        = time.Minute // how long a resource is waited for that was never seen
	longestUnseen = 6 * time.Hour
)

// age returns how long ago something was recorded, at least: records have no fractions of a
// second.
func age(at time.Time) time.Duration { return time.Since(at) - time.Second }

// intend changes the annotations of the object as its resource requires. They are written before
// anything is created.
func (s *session[T]) intend(ctx context.Context) error {
	obj, class := s.req.Object, s.options.Identity.class
	known := IDOf(obj) != ""
	if !class.chosen() && !known && s.id != "" { // it was found, or its annotations are gone
		annotate(obj, IDAnnotation, s.id)
		setRecord(obj, s.record)
		known = true
	}
	o := ownership[T]{s}
	switch err := o.claim(ctx); {
	case err != nil:
		return err
	case s.decision.next == nextShow:
		return step.ErrNothingToClaim
	case s.seen.exists():
		return nil
	}
	if !PolicyOf(s.req).Allows(policy.VerbCreate) {
		if !known && s.record.step != begun {
			return step.ErrNothingToClaim
		}
		return nil
	}
	if class.chosen() {
		if !known {
			class.announce(s)
		}
		return nil
	}
	switch {
	case s.recent():
		return nil // it will be seen
	case known: // another client has deleted it, or it was never seen
		if err := o.endClaim(ctx); err != nil {
			return err
		}
		s.countUnseen()
		annotate(obj, IDAnnotation, "")
		s.id, s.gone = "", s.id
	case s.record.step == begun:
		if again, err := s.resume(); err != nil || !again {
			return err
		}
	}
	if a, maybe := s.memory.of(obj.GetUID(), s.record); a.later && !maybe {
		return nil // the intent is written
	}
	if err := s.memory.holds(obj.GetUID(), obj.GetGeneration()); err != nil {
		return fmt.Errorf("create: %w", err)
	}
	class.announce(s)
	return nil
}

// begin records the intent to create a resource, with the token of the creation if it has one.
func (s *session[T]) begin(token string) {
	s.record = record{step: begun, at: time.Now(), process: s.memory.process, token: token, uid: OwnerOf(s.req.Object), unseen: s.record.unseen}
	if s.options.Identity.class.chosen() {
		s.record.of = fingerprint(s.id)
	}
	// The memory notes it when Create is called: if the object is stale, it is not written, and what
	// the memory has is newer.
	setRecord(s.req.Object, s.record)
}

// setCreated records that the resource was created.
func (s *session[T]) setCreated() {
	s.record = record{step: created, at: time.Now(), token: s.record.token, uid: OwnerOf(s.req.Object), of: fingerprint(s.id), unseen: s.record.unseen}
	setRecord(s.req.Object, s.record)
}

// countUnseen counts the resource as one that was never seen, if it was not, and warns of the second.
func (s *session[T]) countUnseen() {
	if s.record.unseen++; s.memory.get(s.req.Object.GetUID()).seen {
		s.record.unseen = 0
	}
	if s.record.unseen > 1 {
		s.req.Event(corev1.EventTypeWarning, reasonNeverSeen, "Create", "The resource %s, created %s ago, was never seen, and neither were %d before it: another one is created. If reads of the system lag, raise Options.Visible of the operator",
			s.id, age(s.record.at).Round(time.Second), s.record.unseen-1)
	}
}

// resume decides what becomes of a creation that was begun, and whose id is not known. It reports
// whether another one has to be begun.
func (s *session[T]) resume() (again bool, err error) {
	if _, maybe := s.memory.of(s.req.Object.GetUID(), s.record); !maybe {
		return false, nil // Create was not called
	}
	return s.options.Identity.class.resume(s)
}

// reconcile does what the observation requires.
func (s *session[T]) reconcile(ctx context.Context) error {
	allowed := PolicyOf(s.req)
	if err := (ownership[T]{s}).secure(ctx); err != nil {
		return err
	}
	if s.seen.State == Absent && !s.recent() {
		if why := allowed.Refusal(policy.VerbCreate); why != "" {
			s.markAbsent(why)
			return ctrlkit.RequeueWithin(s.poll(s.req.Object))
		}
		if err := s.create(ctx); err != nil {
			return err
		}
	} else if s.seen.State == Drifted && allowed.Allows(policy.VerbUpdate) {
		if err := s.update(ctx); err != nil {
			return err
		}
	}
	return s.settle(ctx)
}

// create creates the resource, and records its id.
func (s *session[T]) create(ctx context.Context) error {
	obj := s.req.Object
	creation, err := s.options.Identity.class.creation(obj, s.id, s.record)
	if err == nil && s.options.Identity.class.chosen() {
		err = ownership[T]{s}.ensureClaim(ctx)
	}
	if err != nil {
		return err
	}
	id, err := s.callCreate(ctx, creation)
	if err == nil && creation.Token != "" && id == s.gone { // the system remembers what was deleted
		id, err = s.createNext(ctx)
	}
	minted := !s.options.Identity.class.chosen()
	switch {
	case err != nil && answer.IsRefused(err) && minted:
		if _, maybe := s.memory.of(obj.GetUID(), s.record); !maybe {
			setRecord(obj, record{step: refused, at: time.Now(), token: s.record.token, uid: s.record.uid})
		}
		return err
	case err != nil:
		return err
	case id == "" && minted:
		return failure.Mark(fmt.Errorf("create of %T has returned no id: this is a bug in the operator", s.client), failure.WithClass(failure.ClassTerminal))
	}
	unpublished := s.publishOnce(ctx)
	if minted {
		if err = s.minted(ctx, id); err == nil {
			err = s.recordID(ctx, id)
		}
	}
	if err := errors.Join(err, unpublished); err != nil {
		return err
	}
	if err := s.observe(ctx); err != nil {
		return err
	}
	return ownership[T]{s}.check(ctx)
}

// createNext creates a resource with a token that no resource had yet.
func (s *session[T]) createNext(ctx context.Context) (id string, err error) {
	s.begin(s.record.nextToken(s.req.Object))
	if err := s.req.Save(ctx); err != nil {
		return "", fmt.Errorf("recording another token: %w", err)
	}
	return s.callCreate(ctx, Creation{Token: s.record.token})
}

// callCreate calls Create, and keeps in memory what became of it.
func (s *session[T]) callCreate(ctx context.Context, creation Creation) (id string, err error) {
	obj := s.req.Object
	details := make(map[string][]byte)
	err = s.call(ctx, "create", func(ctx context.Context) (err error) {
		ended := s.memory.called(obj.GetUID(), obj.GetGeneration(), s.record, s.req.Classify) // not if a limit has prevented the call
		id, err = s.client.Create(answer.Context(ctx, details), obj, creation)
		ended(cmp.Or(id, creation.Name), err)
		return err
	})
	if err == nil && len(details) > 0 {
		s.memory.change(obj.GetUID(), func(a *attempt) { a.once = details })
	}
	return id, err
}

// minted notes the id that the system has given the resource of the object, and claims it.
func (s *session[T]) minted(ctx context.Context, id string) error {
	s.id, s.found = id, true
	s.memory.change(s.req.Object.GetUID(), func(a *attempt) { a.proven = id })
	return ownership[T]{s}.ensureClaim(ctx)
}

// recordID writes the id of a resource that was created to the object. What comes next may fail,
// or end in a crash.
func (s *session[T]) recordID(ctx context.Context, id string) error {
	s.id = id
	annotate(s.req.Object, IDAnnotation, id)
	s.setCreated()
	if err := s.req.Save(ctx); err != nil {
		return fmt.Errorf("recording the id %q: %w", id, err)
	}
	return nil
}

// update updates the resource, and observes what that has changed.
func (s *session[T]) update(ctx context.Context) error {
	details := make(map[string][]byte)
	err := s.call(ctx, "update", func(ctx context.Context) error {
		return s.client.Update(answer.Context(ctx, details), s.req.Object, s.id)
	})
	if len(details) > 0 {
		s.memory.change(s.req.Object.GetUID(), func(a *attempt) {
			a.once = maps.Clone(a.once)
			if a.once == nil {
				a.once = make(map[string][]byte, len(details))
			}
			maps.Copy(a.once, details)
		})
		err = errors.Join(err, s.publishOnce(ctx))
	}
	if err != nil {
		return err
	}
	if err := s.observe(ctx); err != nil {
		return err
	}
	return ownership[T]{s}.check(ctx)
}

// settle marks the conditions, publishes what the object's users need, and returns when the
// resource is to be observed again.
func (s *session[T]) settle(ctx context.Context) error {
	before := s.available()
	s.mark()
	switch {
	case s.seen.State == Absent:
		return ctrlkit.Poll("the resource "+s.id+", which was created, to be visible", s.options.Busy)
	case s.seen.busy():
		return ctrlkit.Poll(s.waitsFor(), s.options.Busy)
	case s.seen.State == Broken:
		return broken(s.id, &s.seen)
	case s.seen.State == Drifted && PolicyOf(s.req).Allows(policy.VerbUpdate):
		return ctrlkit.Poll("the update to have an effect", s.options.Busy)
	}
	if done, err := s.lateInitialize(ctx); err != nil || done {
		return err
	}
	if err := s.publish(ctx, false); err != nil {
		if !before {
			s.markUnpublished()
		}
		return err
	}
	if s.seen.Unavailable != "" {
		return ctrlkit.Poll("the resource to be available: "+s.seen.Unavailable, s.options.Busy)
	}
	return ctrlkit.RequeueWithin(s.poll(s.req.Object))
}

// awaitCreation waits until a call of Create that was begun, and has perhaps not ended with its
// process, has an effect that is seen.
func (s *session[T]) awaitCreation(atMost time.Duration) error {
	a, maybe := s.memory.of(s.req.Object.GetUID(), s.record)
	if s.record.step != begun || !maybe || time.Since(a.last) >= atMost {
		return nil
	}
	return ctrlkit.Poll("a resource to be seen whose creation may have been in progress", s.options.Busy)
}
