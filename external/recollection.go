// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A recollection has a session know what the annotations of its object, the claim and this process
// know of the resource.
type recollection[T client.Object] struct{ *session[T] }

// recall sets the id and the record to what the annotations say, and to what this process knows
// where they do not.
func (s recollection[T]) recall() {
	obj := s.req.Object
	named := s.options.Identity.class.chosen()
	if s.id = IDOf(obj); named {
		s.memory.see(obj.GetUID(), "", s.record) // its id is known before it is created
	} else {
		s.memory.see(obj.GetUID(), s.id, s.record)
	}
	if s.id != "" {
		return
	}
	switch id, r, ok := s.memory.restore(obj.GetUID()); {
	case !ok || id == "" && s.record.step != "":
	case named:
		s.record = s.memory.last(obj.GetUID())
	default:
		s.id, s.record = id, r
	}
}

// isFirst reports whether nothing shows that the object was ever reconciled before.
func (s recollection[T]) isFirst() bool {
	if s.req.Conditions == nil || s.record.step != "" || s.before.step != "" || IDOf(s.req.Object) != "" {
		return false
	}
	_, reconciled := s.req.Conditions.Get(condition.Ready)
	return !reconciled
}

// present has a record that is of a time to come be of now: the clock of its process was wrong, or
// a person has written it.
func (s recollection[T]) present() {
	if now := time.Now(); s.record.at.After(now.Add(mostSkew)) {
		s.record.at = now
		setRecord(s.req.Object, s.record)
	}
}

// mostSkew is by how much clocks of machines may differ.
const mostSkew = time.Minute

// readClaimed sets the id to that of the claim of the object where the annotations have none. The
// resource of an object that is being deleted is that of its claim, or that which this process
// knows to be its own, whatever they say.
func (s recollection[T]) readClaimed() {
	obj := s.req.Object
	uid, deleted := obj.GetUID(), !obj.GetDeletionTimestamp().IsZero()
	if proven := s.memory.get(uid).proven; s.options.StoresOwner && deleted && proven != "" {
		s.id = proven
	}
	h := s.claims.of(uid)
	if s.options.StoresOwner || h == nil || s.id != "" && (s.id == h.id || !deleted) {
		return
	}
	s.id = h.id
	if s.record.step == "" || s.record.of != fingerprint(h.id) {
		s.record = record{step: created, at: h.since, uid: OwnerOf(obj), of: fingerprint(h.id)}
		if s.options.Identity.class.chosen() { // the claim was written before Create was called
			s.record.step = begun
			s.memory.see(obj.GetUID(), "", s.record)
		}
	}
}

// missRecord finds out whether a creation may have begun of which neither the annotations nor this
// process know: another client has removed the annotations, and no process that knew them has
// written them again. The record is then one of a creation that another process has begun, and that
// this one has just seen for the first time. It is kept in memory, not written.
func (s recollection[T]) missRecord() {
	obj := s.req.Object
	class, deleted := s.options.Identity.class, !obj.GetDeletionTimestamp().IsZero()
	switch {
	case s.record.step != "" || IDOf(obj) != "" || s.memory.last(obj.GetUID()).step != "" || !class.chosen() && s.id != "":
		return
	case class.repeatable() && !deleted:
		return // to observe the name, or to create with the same token, is enough
	case !class.witness(s.req):
		return
	}
	s.record = record{step: begun, at: time.Now(), token: record{}.tokenOf(obj)}
	s.memory.see(obj.GetUID(), "", s.record)
}
