// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package explore decides which plans of a simulation are run, in which order, and for how long, and
// makes those smaller that show something. A [Runner] carries them out: package sim has one for runs
// in virtual time, and package program one for processes in real time.
package explore
