// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package state reads the cluster for the code that ctrlkit generates. It holds selections of
// objects, indexes of the cache, a memo of what one reconcile has read, and the mapping of a
// changed object to the targets that have to be reconciled.
//
// A generated state getter reads like this:
//
//	selection, err := selectCronJobJobs(s.target)
//	if err != nil {
//		return nil, err
//	}
//	var list batchv1.JobList
//	if err := selection.List(ctx, state.Uncopied(s.Reader), &list); err != nil {
//		return nil, err
//	}
//	return state.Sorted(state.ControlledBy(s.target, list.Items)), nil
//
// A target is the object that is reconciled. A state is one object, or a list of objects, that the
// reconcile of a target reads.
//
// The package works without generated code as well. It never writes to the cluster. Its errors do
// not name the state that they belong to: the caller does.
package state
