// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"errors"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/reference"
	"github.com/ctrlkit/ctrlkit/step"
)

// await awaits all references, and records what the object uses.
func (e *external[T]) await(ctx context.Context, req *step.Request[T]) error {
	return e.eachReference(req, func(r reference.Of[T]) error { return r.Await(ctx, req) })
}

// observeReferences does the same for an object whose policy does not let its resource be changed: what
// it refers to is needed to observe that, and stays as well.
func (e *external[T]) observeReferences(ctx context.Context, req *step.Request[T]) error {
	if len(e.options.References) == 0 {
		return nil
	}
	if err := e.eachReference(req, func(r reference.Of[T]) error { return r.Resolve(ctx, req) }); err != nil {
		return err
	}
	if err := req.Save(ctx); err != nil { // a use is written before its guard
		return err
	}
	return e.eachReference(req, func(r reference.Of[T]) error { return r.Hold(ctx, req) })
}

// settle ends the use of what the object has referred to before.
func (e *external[T]) settle(req *step.Request[T]) {
	for _, r := range e.options.References {
		r.Settle(req)
	}
}

// eachReference calls a function for each reference, so that the conditions show all that is
// missing. A resource that does not exist yet is not available for the same reason.
func (e *external[T]) eachReference(req *step.Request[T], call func(r reference.Of[T]) error) error {
	var all []error
	for _, r := range e.options.References {
		err := call(r)
		if len(ctrlkit.Waits(err)) > 0 && req.Conditions != nil && IDOf(req.Object) == "" {
			for _, declared := range r.Conditions() {
				if c, ok := req.Conditions.Get(declared.Type); ok {
					req.Conditions.MarkUnhealthy(ConditionAvailable, condition.SeverityInfo, c.Reason, c.Message)
				}
			}
		}
		all = append(all, err)
	}
	return errors.Join(all...)
}
