// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package orphan ends a program when the process that started it is gone.
//
// A control plane in a test is a tree of processes whose root may be killed at any time: by a
// test's time limit, a debugger, the kernel. No process remains then to stop the servers, so each
// server watches its parent. This works for all programs that start the servers directly, such as
// controller-runtime's envtest.
//
// The parent's process id is checked twice a second. On Linux the kernel could send a signal when
// the parent ends (prctl), but it does so when the thread that started the child ends, and the
// threads of a Go program are short-lived.
package orphan
