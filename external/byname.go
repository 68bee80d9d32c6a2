// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/step"
)

// ByName is for a system whose clients choose the names of resources: to create a resource twice
// is impossible.
//
// Name returns the name for an object: see [NameRules.NameOf]. It is called once for each object,
// and its result is recorded in IDAnnotation. A resource of that name that exists already is adopted as
// Options.Adopt says, and if IDAnnotation names it; so is one of another name.
func ByName[T client.Object](name func(obj T) (string, error)) Identity[T] {
	return Identity[T]{class: byName[T]{name}}
}

// byName implements class. The id is known at any time, so that a resource is observed where the
// other classes have to find it.
type byName[T client.Object] struct {
	name func(obj T) (string, error)
}

func (c byName[T]) check() error {
	if c.name == nil {
		return errors.New("identity by name without a function that returns the name")
	}
	return nil
}

func (byName[T]) chosen() bool     { return true }
func (byName[T]) findable() bool   { return true }
func (byName[T]) repeatable() bool { return true }

// names implements class.
func (c byName[T]) names(obj T, id string) bool {
	name, err := c.name(obj)
	return err == nil && name == id
}

// witness implements class.
func (byName[T]) witness(req *step.Request[T]) bool { return req.WasClaimed() }

// locate implements class.
func (c byName[T]) locate(_ context.Context, s *session[T]) (err error) {
	if s.id, err = c.name(s.req.Object); err != nil {
		return failure.Mark(fmt.Errorf("naming the resource: %w", err), failure.WithClass(failure.ClassTerminal))
	}
	return nil
}

// announce implements class: it records the name.
func (byName[T]) announce(s *session[T]) {
	annotate(s.req.Object, IDAnnotation, s.id)
	if s.record.step == begun { // its annotations are gone
		setRecord(s.req.Object, s.record)
	} else {
		s.begin("")
	}
}

// creation implements class.
func (c byName[T]) creation(obj T, id string, _ record) (Creation, error) {
	if id != "" {
		return Creation{Name: id}, nil
	}
	name, err := c.name(obj)
	return Creation{Name: name}, err
}

func (byName[T]) resume(*session[T]) (again bool, err error)                  { return false, nil }
func (byName[T]) recover(context.Context, *session[T]) (none bool, err error) { return true, nil }

// gone implements class: a creation that did not end with its process may still have an effect.
func (byName[T]) gone(s *session[T]) (bool, error) { return !lagging(s), nil }
