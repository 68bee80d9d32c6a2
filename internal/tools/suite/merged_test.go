// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
	"github.com/ctrlkit/ctrlkit/internal/tools/suite/merge"
)

// Lines of several programs are not mixed, however they write them.
func TestLinesOfSeveralPrograms(t *testing.T) {
	var out bytes.Buffer
	lines := &lineWriter{to: &out}
	var programs sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		programs.Go(func() {
			to := &partOfLines{of: lines}
			for range 100 {
				for _, part := range []string{name, " " + name + "\n" + name, " ", name, "\n"} {
					if _, err := io.WriteString(to, part); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	programs.Wait()
	all := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(all) != 600 {
		t.Errorf("%d lines, want 600", len(all))
	}
	for _, line := range all {
		if a, b, ok := strings.Cut(line, " "); !ok || a != b {
			t.Errorf("a line of two programs: %q", line)
		}
	}
}

// A process that crashes while a test runs is a package that fails, although the test has no end.
func TestACrashIsAFailure(t *testing.T) {
	rings.Test(t, "runs a tool of go")
	convert := exec.CommandContext(t.Context(), "go", "tool", "test2json", "-t", "-p", module+"/a")
	convert.Stdin = strings.NewReader("\x16=== RUN   TestA\nSIGQUIT: quit\nexit status 2\n" + marker + "FAIL\t" + module + "/a\t1.0s\n")
	events, err := convert.Output()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	results, err := goTest{}.read(bytes.NewReader(events), &out)
	if err != nil || len(results) != 1 || results[0].Passed || results[0].Package != module+"/a" {
		t.Errorf("got %+v, error %v", results, err)
	}
	if !strings.Contains(out.String(), "SIGQUIT") {
		t.Errorf("what the process has printed is lost: %s", out.String())
	}
}

// What has to be linked first begins first; otherwise the order stays.
func TestOrderOfPackages(t *testing.T) {
	m := merged{packages: []string{"./a", "./b"}}
	if got := strings.Join(m.order(&merge.Binary{}), " "); got != "./a ./b" {
		t.Error(got)
	}
	if got := importPath("."); got != module {
		t.Error(got)
	}
	if got := localName(importPath("./a/b")); got != "./a/b" {
		t.Error(got)
	}
}

// A package without a result has failed.
func TestMissingResults(t *testing.T) {
	m := merged{packages: []string{"./a", "./b"}}
	var out bytes.Buffer
	got := m.missing(&out, []result{{Package: module + "/a", Passed: true}})
	if len(got) != 1 || got[0].Package != module+"/b" || got[0].Passed || !strings.Contains(out.String(), "./b") {
		t.Errorf("got %+v, printed %q", got, out.String())
	}
}

// The list of packages that a run was given stays as it is: it may be that of another stage, too.
func TestWithout(t *testing.T) {
	all := []string{".", "./a", "./b"}
	left := without(all, []result{{Package: module}, {Package: module + "/b"}})
	if strings.Join(left, " ") != "./a" || strings.Join(all, " ") != ". ./a ./b" {
		t.Errorf("left are %q of %q", left, all)
	}
}
