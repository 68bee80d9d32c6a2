// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// Every command starts with the initialization of all packages, also of those that it does not
// need. What that allocates is the same on every machine; a package that does real work there shows
// in it.
func TestStartIsCheap(t *testing.T) {
	rings.Test(t, "runs the command")
	const limit = 24 << 20 // bytes: the Kubernetes libraries take 6 MB, with the race detector 13
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1", "HOME="+t.TempDir(), "XDG_CACHE_HOME=")
	trace, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, trace)
	}
	initialized := regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, \d+ allocs$`).FindAllSubmatch(trace, -1)
	if len(initialized) < 10 {
		t.Fatalf("the trace of the initialization has %d packages:\n%s", len(initialized), trace)
	}
	total := 0
	for _, found := range initialized {
		bytes, err := strconv.Atoi(string(found[2]))
		must(t, err)
		total += bytes
		if regexp.MustCompile(`/internal/show/drawing(/|$)|/diagram(/|$)`).Match(found[1]) {
			t.Errorf("%s is initialized (%d bytes): only a command that draws may pay for pictures", found[1], bytes)
		}
	}
	if total > limit {
		t.Errorf("the packages allocate %d bytes before main, want at most %d:\n%s", total, limit, trace)
	}
	t.Logf("%d packages allocate %d bytes before main", len(initialized), total)
}
