// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/step"
)

// A Mistake is one that this package could have, for the tests of its tests.
type Mistake string

const (
	IntentAfterCreate Mistake = "the intent is written after the creation"
	AnotherToken      Mistake = "each attempt has another token"
	NoMemory          Mistake = "a lost answer to the write of the intent is taken for a crash"
	DeletesOnlyKnown  Mistake = "a creation that was begun is not looked for when the object is deleted"
	NoWait            Mistake = "a creation that may be in progress is not awaited when the object is deleted"
	BelievesReads     Mistake = "what is not seen at once is created again"
)

// NewWrong is New with a mistake.
func NewWrong[T client.Object](name string, connector Connector[T], options Options[T], mistake Mistake) step.Step[T] {
	e := newExternal(name, connector, options)
	if mistake == BelievesReads {
		e.options.Visible = 1
	}
	w, funcs := &wrong[T]{external: e, mistake: mistake}, e.funcs()
	funcs.Claim, funcs.Delete = w.claim, w.delete
	return e.step(name, funcs)
}

type wrong[T client.Object] struct {
	*external[T]
	mistake Mistake
	tokens  atomic.Int64
}

func (w *wrong[T]) claim(ctx context.Context, req *step.Request[T]) error {
	switch w.mistake {
	case NoMemory:
		w.memory = newMemory()
	case BelievesReads: // also of a resource that was never seen
		w.memory.change(req.Object.GetUID(), func(a *attempt) { a.seen = true })
	}
	err := w.external.claim(ctx, req)
	s, ok := step.Lookup(req, w.session)
	if err != nil || !ok || s.record.step != begun {
		return err
	}
	switch w.mistake {
	case AnotherToken:
		s.begin(fmt.Sprintf("%s-%s-%d", req.Object.GetUID(), w.memory.process, w.tokens.Add(1)))
	case IntentAfterCreate:
		_, err = s.callCreate(ctx, Creation{Tag: OwnerOf(req.Object)}) // what it returns is recorded with the intent
		if a, maybe := w.memory.of(req.Object.GetUID(), s.record); err == nil && maybe {
			s.id = a.id
			annotate(req.Object, IDAnnotation, a.id)
			s.setCreated()
			return s.observe(ctx)
		}
	}
	return err
}

func (w *wrong[T]) delete(ctx context.Context, req *step.Request[T]) error {
	if w.mistake == DeletesOnlyKnown && IDOf(req.Object) == "" {
		return nil
	}
	if r, err := recordOf(req.Object); err == nil && w.mistake == NoWait {
		w.memory.see(req.Object.GetUID(), "", r)
		w.memory.change(req.Object.GetUID(), func(a *attempt) { a.last = time.Time{} })
	}
	return w.external.delete(ctx, req)
}
