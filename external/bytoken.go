// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/policy"
	"github.com/ctrlkit/ctrlkit/step"
)

// ByToken is for a system that chooses the ids of resources, and remembers the idempotency token
// of a creation: to create with the same token again returns the same resource.
func ByToken[T client.Object]() Identity[T] { return Identity[T]{class: byToken[T]{}} }

// byToken implements class.
type byToken[T client.Object] struct{ minted[T] }

func (byToken[T]) repeatable() bool { return true }

// witness implements class. A token is not written before Create is called where the finalizer is
// there already, so that any finalizer is a witness.
func (byToken[T]) witness(req *step.Request[T]) bool {
	return req.HasFinalizer() && PolicyOf(req).Allows(policy.VerbCreate)
}

// announce implements class. The first token is known without being written, and the deletion of the
// object looks for what was created with it.
func (byToken[T]) announce(s *session[T]) {
	obj := s.req.Object
	if token := s.record.tokenOf(obj); s.record.step == "" && s.req.HasFinalizer() {
		s.record = record{step: begun, at: time.Now(), process: s.memory.process, token: token, uid: OwnerOf(obj)}
	} else {
		s.begin(token)
	}
}

// creation implements class.
func (byToken[T]) creation(obj T, _ string, r record) (Creation, error) {
	return Creation{Token: cmp.Or(r.token, r.tokenOf(obj))}, nil
}

// resume implements class: the token makes it the same creation.
func (byToken[T]) resume(*session[T]) (again bool, err error) { return false, nil }

// recover implements class: to create with the same token returns what was created, or creates what
// is deleted at once.
func (byToken[T]) recover(ctx context.Context, s *session[T]) (none bool, err error) {
	if err := s.awaitCreation(s.calls.Deadline); err != nil {
		return false, err
	}
	id, err := s.callCreate(ctx, Creation{Token: s.record.token})
	if err == nil && id == "" {
		err = errors.New("create has returned no id")
	}
	if err == nil {
		if err := s.minted(ctx, id); err != nil {
			return false, withoutSystem(err)
		}
		if unsaved := s.recordID(ctx, id); unsaved != nil { // it is deleted all the more
			s.req.Logger.Info("The id of a resource that is deleted now was not recorded", "id", id, "error", unsaved.Error())
		}
		err = s.observe(ctx)
	}
	return false, withoutSystem(err)
}
