// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package rings says in which ring of the test suite a test runs:
//
//   - make unit is go test -short: what needs no process, no compiler, and no second of time.
//   - make test is go test: each promise shown once for real, with samples of the simulations.
//   - make explore runs everything else, such as all plans of the simulations, for as long as
//     it is given.
//
// A test that says nothing runs in the first two.
package rings

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Variable is the environment variable that lets the tests of the third ring run. The explorer
// sets it, and the lines that it prints to run a finding again.
const Variable = "EXPLORE"

// Test leaves a test to make test and make explore. Why says what it needs: "starts a control
// plane", "compiles programs", "takes two seconds".
func Test(tb testing.TB, why string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("make test runs it: it %s", why)
	}
}

// Explore leaves a test to make explore. Why says what it needs: "takes minutes".
func Explore(tb testing.TB, why string) {
	tb.Helper()
	if !Exploring() {
		tb.Skipf("make explore runs it: it %s", why)
	}
}

// Exploring reports whether the tests of the third ring run: all of them, or the one that is asked
// for by a plan of the simulator, as its findings print it.
func Exploring() bool {
	plan := flag.Lookup("sim.plan")
	return os.Getenv(Variable) != "" || plan != nil && plan.Value.String() != ""
}

// Reads says that a test depends on all files of the repository, of which root is the path, because
// it compiles them or lists them: go test then runs it again when one has changed, and does not
// take its last result. It sees by itself only what the test process opens.
func Reads(tb testing.TB, root string) {
	tb.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		return err // WalkDir has opened the directory, and go test has noted what is in it
	})
	if err != nil {
		tb.Fatal(err)
	}
}
