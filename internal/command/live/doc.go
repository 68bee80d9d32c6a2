// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package live tests the command as it runs operators: ctrlkit run, in memory and on a control plane,
// and all that the tutorial does.
package live
