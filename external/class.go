// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// A class is what a session asks about resources by which a system identifies them. Each of the
// four has a file, to be read beside its row of the table in docs/external.md.
type class[T client.Object] interface {
	// check returns what is wrong with the identity.
	check() error

	// chosen reports whether clients choose ids. An id is then known before the resource exists, and
	// another client may have created the resource that has it.
	chosen() bool

	// names reports whether an id is the one that is chosen for an object.
	names(obj T, id string) bool

	// findable reports whether a resource is found whose id is recorded nowhere, and whether the
	// system shows whose it is.
	findable() bool

	// repeatable reports whether to create what exists already is harmless.
	repeatable() bool

	// witness reports whether the object shows that a creation may have begun although another client
	// has removed its annotations.
	witness(req *step.Request[T]) bool

	// locate sets the id of a resource whose id is recorded nowhere, if there is a way to find it.
	locate(ctx context.Context, s *session[T]) error

	// announce records the intent to create the resource, before Create is called.
	announce(s *session[T])

	// creation returns by what a resource is created: one with an id, or with the record of the intent.
	creation(obj T, id string, r record) (Creation, error)

	// resume decides what becomes of a creation that may have had an effect, and whose id is not
	// known. It reports whether another one has to be announced.
	resume(s *session[T]) (again bool, err error)

	// recover sets the id of what was created with the last intent of an object that is being deleted.
	// It reports whether there is nothing to delete.
	recover(ctx context.Context, s *session[T]) (none bool, err error)

	// gone reports whether the resource of an object that is being deleted is gone if it is not seen.
	gone(s *session[T]) (bool, error)
}

// minted has what the classes share in which the system chooses ids.
type minted[T client.Object] struct{}

func (minted[T]) check() error                              { return nil }
func (minted[T]) chosen() bool                              { return false }
func (minted[T]) names(T, string) bool                      { return false }
func (minted[T]) findable() bool                            { return false }
func (minted[T]) repeatable() bool                          { return false }
func (minted[T]) locate(context.Context, *session[T]) error { return nil }
func (minted[T]) announce(s *session[T])                    { s.begin("") }
func (minted[T]) gone(s *session[T]) (bool, error)          { return !s.recent(), nil }

// creation implements class.
func (minted[T]) creation(T, string, record) (Creation, error) { return Creation{}, nil }

// witness is the finalizer, which was written with the annotations, and has protected the object
// from being deleted since.
func (minted[T]) witness(req *step.Request[T]) bool { return req.WasClaimed() }

// recover implements class: what there is would have been found by now.
func (minted[T]) recover(_ context.Context, s *session[T]) (none bool, err error) {
	_, err = s.resume()
	return true, err
}
