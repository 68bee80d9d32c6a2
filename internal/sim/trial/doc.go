// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package trial is what it takes to try an operator on a cluster in memory: to change objects as
// kubectl does, to know whose a change is, and to tell a new state of an object from one that it was in
// before.
package trial
