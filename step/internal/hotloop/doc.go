// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package hotloop finds objects that are reconciled again and again because of what is written to
// them.
//
// A hot loop is one of two things. A fight: another client undoes what we have written, and we
// write it again. An echo: each of our writes causes the event of the next one.
// docs/design/0008-what-is-a-hot-loop.md says why these, and what is none.
//
// Its main type is the [Detector] of one object, which the engine keeps between the reconciles of
// the object:
//
//	disputes := detector.Disputes(ctx, reader, self, obj)
//	record.Watch(&detector, detector.Reads())
//	// The steps read and write through clients that note in record what they do.
//	found, slow := detector.Observe(hotloop.Reconcile{Record: record, Disputes: disputes, ...})
//
// A detector only proposes how long an object has to wait. Package track notes what is read and
// written, and compares the fields. The engine holds the object back, and reports the loop in the
// journal, in the conditions, and as a Kubernetes event.
package hotloop
