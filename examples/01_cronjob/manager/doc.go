// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package manager implements the actions of the CronJob operator.
//
//   - cronjob.ctrlkit declares the actions, and the state that they read (the Jobs of the CronJob).
//   - zz_generated.cronjob.go is generated from it: it reads the state, and has a method for each
//     action.
//   - impl.go, run.go and status.go implement the actions; schedule.go computes when a run is due;
//     job.go creates and reads Jobs.
//
// The controller, in the directory above, arranges the actions in a workflow.
package manager

//go:generate go tool ctrlkit generate cronjob.ctrlkit
