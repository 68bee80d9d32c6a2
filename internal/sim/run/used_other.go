// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package run

import "time"

// Used returns for how long the program has had a processor, and for how long it was ready to run
// while other programs had them; 0, because only Linux says it.
func (p *Process) Used() (ran, starved time.Duration) { return 0, 0 }
