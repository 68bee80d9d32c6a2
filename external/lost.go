// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// missRecord finds out whether a creation may have begun of which neither the annotations nor this
// process know: another client has removed the annotations, and no process that knew them has
// written them again. The record is then one of a creation that another process has begun, and that
// this one has just seen for the first time. It is kept in memory, not written.
func (s *session[T]) missRecord() {
	obj := s.req.Object
	if s.record.step != "" || IDOf(obj) != "" || s.memory.last(obj.GetUID()).step != "" || s.options.Identity.class != className && s.id != "" {
		return
	}
	deleted := !obj.GetDeletionTimestamp().IsZero()
	switch {
	case s.options.Identity.class == className && !deleted:
		return // to observe the name is enough
	case s.options.Identity.class == classToken && !deleted:
		return // to create with the same token is enough
	case !mayBeLost(s.req, s.options.Identity.class):
		return
	}
	s.record = record{step: begun, at: time.Now(), token: record{}.tokenOf(obj)}
	s.memory.see(obj.GetUID(), "", s.record)
}

// mayBeLost reports whether a resource may exist for an object without annotations. What has
// protected the object from being deleted is the witness: its finalizer, written with the
// annotations. A token is not written before Create is called where the finalizer is there already,
// so that any finalizer is one.
func mayBeLost[T client.Object](req *step.Request[T], class class) bool {
	if class == classToken {
		return req.HasFinalizer() && lifecycle.PolicyOf(req).Allows(policy.VerbCreate)
	}
	return req.WasClaimed()
}
