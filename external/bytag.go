// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/failure"
)

// ByTag is for a system that chooses the ids of resources, and finds resources by what was stored
// with them when they were created: its client is a [Finder]. Window is how long it may take until
// a resource is found that was created. After a crash the operator waits so long before it creates
// another one.
func ByTag[T client.Object](window time.Duration) Identity[T] {
	return Identity[T]{class: byTag[T]{window: window}, window: window}
}

// byTag implements class.
type byTag[T client.Object] struct {
	minted[T]
	window time.Duration
}

func (c byTag[T]) check() error {
	if c.window <= 0 {
		return errors.New("identity by tag: say how long it may take until a resource is found, such as a minute")
	}
	return nil
}

func (byTag[T]) findable() bool { return true }

// locate implements class: it asks for the resource with our tag.
func (byTag[T]) locate(ctx context.Context, s *session[T]) error {
	finder, ok := s.client.(Finder[T])
	if !ok {
		return failure.Mark(fmt.Errorf("%T has no method Find, which identity ByTag needs", s.client), failure.WithClass(failure.ClassTerminal))
	}
	err := s.call(ctx, "find", func(ctx context.Context) (err error) {
		s.id, err = finder.Find(ctx, s.req.Object, OwnerOf(s.req.Object))
		return err
	})
	if err == nil && s.id != "" {
		s.found = true
		s.record = record{step: created, at: time.Now(), uid: OwnerOf(s.req.Object)} // or not much earlier
	}
	return err
}

// creation implements class.
func (byTag[T]) creation(obj T, _ string, _ record) (Creation, error) {
	return Creation{Tag: OwnerOf(obj)}, nil
}

// resume implements class: another resource is created when this one would have been found.
func (byTag[T]) resume(s *session[T]) (again bool, err error) {
	if age(s.record.at) >= s.calls.Deadline+s.options.Visible {
		return true, nil
	}
	err = ctrlkit.Poll("a resource to be found whose creation was begun at "+s.record.at.UTC().Format(time.RFC3339), s.options.Busy)
	return false, err
}
