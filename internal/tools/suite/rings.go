// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/sim/planetest"
)

// programs is the module outside the workspace, whose packages have unit tests, too.
const programs = "controlplane/kubernetes"

// A stage runs some tests, and returns what became of each package.
type stage func() ([]result, error)

// unit is the first ring: the packages of raced with the race detector, the others that have such
// tests without.
func unit(ctx context.Context, out io.Writer) ([]stage, error) {
	known, err := readMemoryOfPassed()
	if err != nil {
		return nil, err
	}
	others, err := packages(ctx, func(t tests) bool { return t.first && !slices.Contains(raced, t.dir) })
	if err != nil {
		return nil, err
	}
	withRace := underRace(raced).begin(ctx, out, known)
	rest := merged{packages: others, short: true, atOnce: runtime.GOMAXPROCS(0)}.begin(ctx, out, known)
	return []stage{
		func() ([]result, error) { return withRace.run(ctx, out) },
		func() ([]result, error) { return rest.run(ctx, out) },
	}, nil
}

func underRace(dirs []string) merged {
	return merged{packages: dirs, short: true, race: true, atOnce: runtime.GOMAXPROCS(0)}
}

func readMemoryOfPassed() (*passed, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return readPassed(memoryOfPassed, root)
}

// packages returns the packages with such tests.
func packages(ctx context.Context, wanted func(tests) bool) ([]string, error) {
	all, err := tested(ctx)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, t := range all {
		if wanted(t) {
			dirs = append(dirs, t.dir)
		}
	}
	return dirs, nil
}

// test is the second ring, which includes the first. What has run with the race detector, and has no
// other tests, runs once.
func test(ctx context.Context, out io.Writer) ([]stage, error) {
	known, err := readMemoryOfPassed()
	if err != nil {
		return nil, err
	}
	all, err := packages(ctx, laterOrUnraced)
	if err != nil {
		return nil, err
	}
	withRace := underRace(slices.Concat(racedLater, raced)).begin(ctx, out, known)
	atOnce := 2 * runtime.GOMAXPROCS(0) // many tests wait for a control plane
	rest := merged{packages: all, atOnce: atOnce}.begin(ctx, out, known)
	return []stage{
		func() ([]result, error) { return withRace.run(ctx, out) },
		func() ([]result, error) { return withControlPlane(ctx, out, rest) },
		func() ([]result, error) {
			return goTest{dir: programs, env: []string{"GOWORK=off"}, args: []string{"./internal/..."}}.run(ctx, out)
		},
	}, nil
}

func laterOrUnraced(t tests) bool {
	return t.later || !slices.Contains(raced, t.dir) && !slices.Contains(racedLater, t.dir)
}

// withControlPlane runs tests with one control plane for those that can share it. It has the
// definitions of all examples from the beginning, because the garbage collector needs half a minute
// to notice a later one.
func withControlPlane(ctx context.Context, out io.Writer, tests *building) (results []result, err error) {
	definitions, err := filepath.Glob("examples/*/config/crd/bases")
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(out, "starting the control plane that tests share")
	plane, err := controlplane.Start(ctx, controlplane.Options{Parts: controlplane.AllParts, CRDs: definitions, Progress: out})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, plane.Err(), plane.Stop()) }()
	dir, err := plane.Share()
	if err != nil {
		return nil, err
	}
	return tests.run(ctx, out, planetest.Variable+"="+dir)
}

// slowest is how many packages the summary names.
const slowest = 10

// report runs the stages of a ring, also after one that failed, and prints the slowest packages and
// those that failed.
func report(out io.Writer, file string, ring func() ([]stage, error)) error {
	begin := time.Now()
	stages, err := ring()
	if err != nil {
		return err
	}
	var all []result
	var errs []error
	for _, run := range stages {
		results, err := run()
		all, errs = append(all, results...), append(errs, err)
	}
	slices.SortStableFunc(all, func(a, b result) int { return cmp.Compare(b.Elapsed, a.Elapsed) })
	if file != "" {
		content, err := json.MarshalIndent(all, "", "\t")
		errs = append(errs, err, os.WriteFile(file, content, 0o644))
	}
	fmt.Fprintf(out, "\nthe slowest packages:\n")
	for _, r := range all[:min(slowest, len(all))] {
		fmt.Fprintf(out, "  %6.1fs, %5.1fs of processor time  %s\n", r.Elapsed.Seconds(), r.Spent.Seconds(), r.name())
	}
	failed := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return r.Passed })
	tested := slices.DeleteFunc(all, func(r result) bool { return r.Skipped })
	fmt.Fprintf(out, "\nin %s\npackages: %d passed, %d failed\n", time.Since(begin).Round(time.Second), len(tested)-len(failed), len(failed))
	for _, r := range failed {
		fmt.Fprintf(out, "FAIL %s\n", r.name())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if len(failed) > 0 {
		return errFailed
	}
	return nil
}
