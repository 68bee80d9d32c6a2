// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager decides what a CronJob needs: the part of the operator that is worth reading.
//
//   - cronjob.ctrlkit declares the state that the actions look at (the Jobs of the CronJob) and the actions.
//   - zz_generated.cronjob.go is what ctrlkit makes of it: how the state is read, and a method for each action.
//   - impl.go implements the actions; schedule.go says when a run is due; job.go knows what a Job of ours looks like.
//
// Who puts the actions together to a workflow is the controller, in the directory above.
package manager

//go:generate go tool ctrlkit generate cronjob.ctrlkit
