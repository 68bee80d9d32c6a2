// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"sync"
	"time"
)

// A progress counts the packages of a build.
type progress struct {
	mu          sync.Mutex      // guards what follows
	downloading bool            // until a package is compiled
	begun       time.Time       // when the first package was
	weight      map[string]int  // of each package that the build needs, once they are known
	stale       map[string]bool // packages to compile, once they are known
	compiled    map[string]bool // packages of which the compiler was started
}

func (p *progress) download() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.downloading = true
}

// plan sets the packages that the build needs.
func (p *progress) plan(packages []listed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.downloading, p.weight, p.stale = false, map[string]int{}, map[string]bool{}
	for _, each := range packages {
		p.weight[each.path] = 1 + each.imports
		if each.stale {
			p.stale[each.path] = true
		}
	}
}

// start counts a package of which the compiler has been started.
func (p *progress) start(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.compiled == nil {
		p.begun, p.compiled = time.Now(), map[string]bool{}
	}
	p.compiled[path] = true
}

// String returns how many packages are compiled, and how long the others will take as soon as that
// can be estimated. It is empty as long as there is nothing to say.
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := len(p.compiled) // those that were compiled before the survey are no longer stale
	for path := range p.stale {
		if !p.compiled[path] {
			total++
		}
	}
	switch done := len(p.compiled); {
	case p.downloading && done == 0:
		return "downloading modules"
	case p.stale == nil && done == 0:
		return ""
	case p.stale == nil:
		return fmt.Sprintf("compiling package %d", done)
	case done >= total:
		return "linking"
	default:
		return fmt.Sprintf("%d of %d packages%s", done, total, inWords(p.remaining()))
	}
}
