// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package run implements `ctrlkit run`: it builds an operator, runs it against a cluster, applies
// sample objects and shows their states. If no cluster is given, it starts a control plane of its
// own.
//
// The parts, in the order in which Run uses them:
//
//   - A Project describes the operator: its package, its definitions and samples, found by
//     convention.
//   - steps report the progress of the set-up.
//   - A supervisor runs the operator, and ends it when the process that started it ends.
//   - Watches feed a World, which holds the operator's objects and their children.
//   - A display draws the World as a tree on a terminal, or writes a line per change to a pipe.
//   - Conditions are evaluated on the World for --until.
//
// The package leaves the control plane to package controlplane. It changes no objects other than
// the samples, their namespaces and the operator's custom resource definitions.
//
// It needs an operating system with process groups. So does envtest, which it uses.
package run
