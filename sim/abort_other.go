// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package sim

import "os"

// abortSignal ends a process.
var abortSignal = os.Kill
