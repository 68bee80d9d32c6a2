// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package orphan ends a program when the process that started it is gone.
//
// A control plane in a test is a tree of processes whose root may be killed at
// any instant: by a test's time limit, a debugger, the kernel. Nobody is left
// then to stop the servers, so each of them looks after itself. This holds
// for every starter that runs the programs directly, controller-runtime's
// envtest among them.
//
// The parent is observed by its process id, twice a second. The kernel could
// announce the death of a parent on Linux (prctl), but means the thread that
// started the child, and the threads of a Go program come and go.
package orphan
