// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package state is what the code that ctrlkit generates reads the cluster with: selections, indexes
// of the cache, a memory for one reconcile, and the mapping of events back to targets.
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
// The package works without generated code as well. It never writes to the cluster, and it leaves
// to its caller to say which state an error belongs to.
package state
