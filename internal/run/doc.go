// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package run is the main job of the ctrlkit command: it builds an operator, runs it against a cluster (one of its
// own when none is given), applies sample objects and shows what becomes of them.
//
// The parts, in the order in which Run uses them: a Project is what is found about the operator by convention; steps
// report the set-up; the operator runs under Supervise, which takes it down together with whoever started it; watches
// feed a World, which knows the operator's objects and their children; a World is drawn as a tree on a terminal, told
// as plain lines in a pipe, and asked whether the Conditions of --until hold.
//
// It leaves the control plane to package controlplane, and never touches objects other than the samples, their
// namespaces and the operator's custom resource definitions.
//
// It needs an operating system with process groups, as envtest, which it uses, does not compile elsewhere either.
package run
