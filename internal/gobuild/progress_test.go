// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gobuild

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressCountsPackagesAndKeepsWords(t *testing.T) {
	var words strings.Builder
	b := &Build{Words: &words}
	out := &lines{each: b.heard}
	say := func(text, want string) {
		t.Helper()
		io.WriteString(out, text) //nolint:errcheck // never fails
		if got := b.String(); got != want {
			t.Errorf("after %q it says %q, want %q", text, got, want)
		}
	}
	say("", "")
	say("go: downloading example.com/x v1.0.0\n", "downloading modules")
	say("fmt\nk8s.io/api/co", "compiling package 1")
	say("re/v1\n# example.com/broken\n", "compiling package 2")
	b.progress.plan([]listed{{path: "fmt"}, {path: "k8s.io/api/core/v1", stale: true}, {path: "example.com/last", stale: true}, {path: "fresh"}})
	say("broken.go:3:1: syntax ", "2 of 3 packages")
	say("error\nexample.com/last\n", "linking")
	say("example.com/main\nno end", "linking")
	out.end()
	if got, want := words.String(), "go: downloading example.com/x v1.0.0\n# example.com/broken\nbroken.go:3:1: syntax error\nno end\n"; got != want {
		t.Errorf("words = %q, want %q", got, want)
	}
}

func TestProgressBeforeTheFirstPackage(t *testing.T) {
	b := new(Build)
	b.progress.plan(readSurvey("stale 2 example.com/a\n- 0 unsafe\n"))
	if got, want := b.String(), "0 of 1 packages"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The packages at the end of a build take longer than those at its beginning: here four times as
// long for four times as many imports.
func TestEstimateKnowsThatPackagesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var packages []listed
		for i := range 100 {
			p := listed{path: fmt.Sprint("example.com/", i), stale: true}
			if i >= 50 {
				p.imports = 3
			}
			packages = append(packages, p)
		}
		p := new(progress)
		p.plan(packages)
		for i := range 51 {
			p.start(fmt.Sprint("example.com/", i))
			if i < 50 {
				time.Sleep(2 * time.Second) // of the bubble
			}
		}
		if got, want := p.String(), "51 of 100 packages, about 6 minutes left"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestNothingIsEstimatedTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(progress)
		p.plan([]listed{{path: "a", stale: true}, {path: "b", stale: true, imports: 1000}, {path: "c", stale: true, imports: 99}})
		p.start("a")
		time.Sleep(2 * leastTime) // of the bubble
		if got, want := p.String(), "1 of 3 packages"; got != want {
			t.Errorf("of too small a share: got %q, want %q", got, want)
		}
		p.start("c")
		if got, want := p.String(), "2 of 3 packages, about 5 minutes left"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		p.begun = time.Now()
		if got, want := p.String(), "2 of 3 packages"; got != want {
			t.Errorf("after too short a time: got %q, want %q", got, want)
		}
	})
}

func TestEstimatesAreRounded(t *testing.T) {
	for _, tt := range []struct {
		remaining time.Duration
		want      string
	}{
		{0, ", less than a minute left"},
		{49 * time.Second, ", less than a minute left"},
		{50 * time.Second, ", about a minute left"},
		{89 * time.Second, ", about a minute left"},
		{90 * time.Second, ", about 2 minutes left"},
		{6*time.Minute + 20*time.Second, ", about 6 minutes left"},
	} {
		if got := inWords(tt.remaining, true); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.remaining, got, tt.want)
		}
	}
	if got := inWords(time.Minute, false); got != "" {
		t.Errorf("without an estimate: got %q", got)
	}
}
