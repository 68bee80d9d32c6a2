// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
)

// A deletion deletes the resource of an object, in a session.
type deletion[T client.Object] struct{ *session[T] }

// run deletes the resource that find has observed.
func (s deletion[T]) run(ctx context.Context) error {
	if s.id == "" {
		if done, err := s.find(ctx); err != nil || done {
			return err
		}
	}
	if !s.seen.exists() {
		if gone, err := s.options.Identity.class.gone(s.session); err != nil {
			return err
		} else if gone {
			return s.ended(ctx)
		}
	}
	visible := s.seen.exists()
	switch ours, err := ownership[T](s).mayDelete(ctx); {
	case err != nil:
		return withoutSystem(err)
	case !ours && !visible && s.decision.next == nextWait:
		return ctrlkit.Poll("the resource "+s.id+", which was created recently, to be visible", s.options.Busy)
	case !ours:
		return nil
	}
	if s.seen.State != Deleting {
		err := s.call(ctx, "delete", func(ctx context.Context) error { return s.client.Delete(ctx, s.req.Object, s.id) })
		if err == nil {
			s.memory.change(s.req.Object.GetUID(), func(a *attempt) { a.deleted = true })
			err = s.observe(ctx)
		}
		if err != nil {
			return withoutSystem(err)
		}
	}
	switch {
	case !s.seen.exists() && !visible && (s.recent() || lagging(s.session)): // the system may not have found what to delete
		return ctrlkit.Poll("the resource "+s.id+", which was created recently, to be visible", s.options.Busy)
	case !s.seen.exists():
		return s.ended(ctx)
	}
	s.seen.State = Deleting
	s.mark()
	return ctrlkit.Poll("the resource "+s.id+" to be deleted", s.options.Busy)
}

// ended ends the claim of an object whose resource is gone, when no call of Delete can be in
// progress any more: it would delete what another object makes under the same name.
func (s deletion[T]) ended(ctx context.Context) error {
	o := ownership[T](s)
	if c := s.facts.claim; c != nil && c.uid == s.req.Object.GetUID() && !s.memory.get(c.uid).deleted && time.Since(c.ending) < s.calls.Deadline {
		return ctrlkit.Poll("the deletion of the resource "+s.id+", which another process has begun, to be over", s.options.Busy)
	}
	return o.endClaim(ctx)
}

// find finds out whether there is a resource whose creation was begun, and reports
// whether there is none.
func (s deletion[T]) find(ctx context.Context) (none bool, err error) {
	_, maybe := s.memory.of(s.req.Object.GetUID(), s.record)
	if s.record.step != begun || !maybe {
		return true, nil
	}
	return s.options.Identity.class.recover(ctx, s.session)
}
