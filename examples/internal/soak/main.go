// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Exit codes.
const (
	exitKept     = 0 // every check holds
	exitViolated = 1 // a check does not hold, or the soak could not be run
	exitUsage    = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// After the first signal the second one kills: the operators and the control plane notice that,
	// too.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command. It returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	options, err := parseOptions(args, out)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitKept
	case err != nil:
		fmt.Fprintf(errOut, "soak: %v\nRun with --help for usage.\n", err)
		return exitUsage
	}
	// It is for the clients here; the operators are processes of their own.
	ctrl.SetLogger(logr.Discard())
	code := exitKept
	var reports []*report
	for range options.times {
		for _, example := range options.examples {
			r := soakOne(ctx, options, example, out, errOut)
			if r == nil || r.violations() > 0 {
				code = exitViolated
			}
			if r != nil {
				reports = append(reports, r)
			}
			if ctx.Err() != nil {
				return exitViolated
			}
		}
		options.seed++
	}
	if len(reports) > 1 {
		printSummary(out, reports)
	}
	return code
}

// soakOne soaks an example, and prints what was found. It returns nil if the soak could not be
// done.
func soakOne(ctx context.Context, o *options, e example, out, errOut io.Writer) *report {
	fmt.Fprintf(out, "%s: %s\n", e.name, o.describe(e))
	r, err := soak(ctx, o, e, newProgress(errOut, e.name))
	if err != nil {
		fmt.Fprintf(errOut, "soak: %s: %v\n", e.name, err)
		return nil
	}
	r.print(out)
	if r.violations() > 0 {
		fmt.Fprintf(out, "run it again: %s\n", o.command(e))
	}
	fmt.Fprintln(out)
	return r
}
