// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"fmt"

	"github.com/ctrlkit/ctrlkit/failure"
	"github.com/ctrlkit/ctrlkit/lifecycle"
	"github.com/ctrlkit/ctrlkit/policy"
)

// wrongID returns the failure of an object that names a resource which does not exist, and that was
// never claimed: another one created instead would not be the one that was meant. Before is what the
// process knew before it read the annotations. With [ByName] the annotation chooses the name of what
// is created.
func (s ownership[T]) wrongID(before record) error {
	obj := s.req.Object
	claimed := func(r record) bool { return r.step == created && (r.of == "" || r.of == fingerprint(s.id)) }
	switch {
	case s.options.Identity.class.chosen(), IDOf(obj) == "", claimed(s.record), claimed(before):
		return nil
	case !lifecycle.PolicyOf(s.req).Allows(policy.VerbCreate):
		return nil // UpdateStatus says that there is none
	case s.record.step == "" && s.req.WasClaimed():
		return nil // another client has removed the record
	}
	s.mark()
	err := failure.Mark(fmt.Errorf("the resource %q, which annotation %s names, does not exist", s.id, IDAnnotation),
		failure.WithClass(failure.ClassTerminal), failure.WithReason(ReasonWrongAnnotation), failure.WithRetryAfter(s.poll(obj)))
	return remediable(err, "correct the annotation, or remove it to have a resource created")
}
