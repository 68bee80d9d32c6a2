// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package run

import "time"

// Starved returns for how long the program was ready to run while other programs had the
// processors; 0, because only Linux says it.
func (p *Process) Starved() time.Duration { return 0 }
