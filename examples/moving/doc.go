// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package moving is the example for docs/moving.md: a reconciler as kubebuilder's users write it
// (package before), the same one as a single step of an engine (package onestep), and what it is in
// the end (package after). The test of the reconciler is the same file in each of them.
package moving
