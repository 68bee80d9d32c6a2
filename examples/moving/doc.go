// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package moving is the example for docs/moving.md: a reconciler as users of kubebuilder write it
// (package before), the same code as a single step of an engine (package onestep), and the result
// of the move (package after). One test of the reconciler is run with all three.
//
// Directory cronjob has a larger one: the CronJob of kubebuilder's tutorial, in five stages.
package moving
