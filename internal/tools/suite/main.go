// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command suite runs the tests of this repository, in three rings; see package rings. It is what
// make unit, make test and make explore call, in the root of the repository.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const usage = `Run the tests of this repository.

  suite unit       what needs no process, no compiler, and no second of time
  suite test       each promise once for real, with samples of the simulations
  suite explore    everything else, for -budget of time

Exit codes: 0 all passed, 1 a test failed, 2 the suite could not run.
`

// errFailed is returned when tests have failed, which has been printed.
var errFailed = errors.New("tests failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(2)
	}
}

// economize has the processes that are started collect garbage less often than by default: they live
// for seconds, and the collections were up to a quarter of their processor time. What tests build is
// linked without debug information, a third of linking, and vetted by make check alone.
func economize(ctx context.Context) error {
	if os.Getenv("GOGC") == "" {
		if err := os.Setenv("GOGC", "400"); err != nil {
			return err
		}
	}
	flags, err := exec.CommandContext(ctx, "go", "env", "GOFLAGS").Output()
	if err != nil {
		return fmt.Errorf("go env GOFLAGS: %w", err)
	}
	return os.Setenv("GOFLAGS", strings.TrimSpace(string(flags))+" -ldflags=-w -vet=off")
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New("want the name of a ring: unit, test or explore")
	}
	if err := economize(ctx); err != nil {
		return err
	}
	flags := flag.NewFlagSet("suite "+args[0], flag.ContinueOnError)
	slow := flags.String("slow", "", "write the times of all packages to this `file`")
	e := explorer{out: out}
	flags.DurationVar(&e.budget, "budget", 30*time.Minute, "explore for so long")
	flags.StringVar(&e.seed, "seed", "", "explore in the order of this `text`, such as a commit, whatever was run before")
	flags.StringVar(&e.shard, "shard", "", "explore only a part: the `i/n`-th, such as 2/4")
	flags.StringVar(&e.only, "only", "", "explore only what matches this `pattern`")
	flags.StringVar(&e.memory, "memory", "bin/explored.json", "the `file` that remembers what was run")
	flags.BoolVar(&e.list, "list", false, "print what would run, and in which order")
	flags.Usage = func() {
		fmt.Fprint(out, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch args[0] {
	case "unit":
		return report(out, *slow, func() ([]stage, error) { return unit(ctx, out) })
	case "test":
		return report(out, *slow, func() ([]stage, error) { return test(ctx, out) })
	case "explore":
		return e.run(ctx)
	}
	return fmt.Errorf("unknown ring %q: want unit, test or explore", args[0])
}
