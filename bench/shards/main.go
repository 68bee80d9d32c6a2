// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command shards runs replicas that share objects, on a real control plane with the real sharder,
// kills some of them, and reads in the audit log of the API server whether any object had two
// owners.
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
	"path/filepath"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

const usage = `Run replicas that share objects, on a real control plane, with the sharder of
github.com/timebertt/kubernetes-controller-sharding, of which a checkout is
needed. A replica joins, some are killed; every object changes meanwhile, and
others are deleted. The audit log of the API server says whether any object had
two owners. It prints a table as Markdown. Run it in the directory bench. Exit
code 1: it had.

Example:
  git clone https://github.com/timebertt/kubernetes-controller-sharding /tmp/sharder
  go run ./shards -sharder /tmp/sharder -objects 2000

Flags:
`

const (
	ring        = "widgets"
	shardPrefix = "shard-"
	shardLabel  = "shard.alpha.sharding.timebertt.dev/"
	drainLabel  = "drain.alpha.sharding.timebertt.dev/"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	t := &trial{progress: stderr}
	flags := flag.NewFlagSet("shards", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&t.sharder, "sharder", "", "the `directory` of a checkout of the sharder")
	flags.IntVar(&t.objects, "objects", 2000, "the `number` of objects, each with three children")
	flags.IntVar(&t.replicas, "replicas", 4, "the `number` of replicas")
	flags.IntVar(&t.kills, "kills", 3, "kill so many `replicas`, one after the other, at random")
	flags.StringVar(&t.audit, "audit", "", "keep the audit log in this `file`")
	flags.Usage = func() {
		fmt.Fprint(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	if t.sharder == "" || flags.NArg() > 0 {
		return errors.New("want -sharder with the directory of a checkout, and no arguments; see -help")
	}
	if t.dir, err = os.MkdirTemp("", "ctrlkit-shards-"); err != nil {
		return err
	}
	defer os.RemoveAll(t.dir) //nolint:errcheck // it is a temporary one
	if t.audit == "" {
		t.audit = filepath.Join(t.dir, "audit.log")
	} else if t.audit, err = filepath.Abs(t.audit); err != nil {
		return err
	}
	for _, build := range []struct{ dir, program, source string }{
		{".", "operator", "./operator"}, {t.sharder, "sharder", "./cmd/sharder"},
	} {
		fmt.Fprintf(stderr, "building %s\n", build.program)
		command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(t.dir, build.program), build.source)
		command.Dir, command.Env = build.dir, os.Environ()
		if build.dir == t.sharder {
			command.Env = append(command.Env, "GOWORK=off", "GOFLAGS=-mod=mod")
		}
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s in %s: %w\n%s", build.source, build.dir, err, output)
		}
	}
	return t.run(ctx, stdout)
}
