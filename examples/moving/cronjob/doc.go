// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package cronjob is the second example for docs/moving.md: the CronJob that kubebuilder's tutorial
// builds, moved floor by floor. Package before is written by hand, in the manner of that tutorial.
// Package onestep calls the same body as a single step of an engine, package steps has a step for each
// thing that is done, package children leaves the Job of a run to apply.Ensure, and package
// workflow arranges actions. What does not change is shared: package runs has it, or the stage before.
//
// The API is that of ../../01_cronjob, where the last floor is: the same workflow, written as a
// document from which the manager of the actions is generated.
//
// The tests of this directory run against all stages.
package cronjob
