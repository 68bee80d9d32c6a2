// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package apply keeps the objects that should exist for another one, its children:
//
//	apply.Children("Workload", func(_ context.Context, req *step.Request[*v1.Website], want *apply.Set) error {
//		want.Add(deployment(req.Object), service(req.Object))
//		want.Add(migration(req.Object), apply.Wave(-1), apply.Replace)
//		return nil
//	}, apply.Owns(&appsv1.Deployment{}, &corev1.Service{}, &batchv1.Job{}))
//
// A function says what should exist. The step that [Children] returns creates it, changes what has
// changed, repairs what others have changed, deletes what is not wanted any more, and says whether
// all is ready. An unchanged object costs no request: see
// docs/design/0011-unchanged-children-are-witnessed.md.
package apply
