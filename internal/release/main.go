// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command release makes a release: archives of the command for every platform, their checksums, the
// manifest for krew, and the tags of the modules. It publishes nothing; it prints the commands that
// do. docs/ship.md describes it.
//
//	go run ./internal/release v0.1.0
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

const usage = `Make a release: archives of the command in dist/, checksums.txt, the manifest for
krew, and the tags of the modules. Everything is built from a fresh clone of the
last commit. Nothing is pushed or uploaded; the commands for that are printed.

Usage:
  go run ./internal/release [FLAGS] VERSION

Examples:
  # is everything ready for the release? Build all, and set no tag
  go run ./internal/release -dry-run v0.1.0

  # the release
  make release VERSION=v0.1.0

Flags:
`

// platforms are those for which the command is built.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// run returns the exit code: 0 for a release, 1 if there is none, 2 for wrong arguments.
func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage)
		flags.PrintDefaults()
	}
	dry := flags.Bool("dry-run", false, "build everything, and set no tag in this repository")
	out := flags.String("o", "dist", "write to this `directory`, which must be empty or not exist")
	list := flags.String("platforms", strings.Join(platforms, ","), "build for these `platforms`, such as linux/amd64")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "release: want one argument, the version, such as v0.1.0; see -help")
		return 2
	}
	dir, err := filepath.Abs(*out)
	if err == nil {
		r := &release{version: flags.Arg(0), source: ".", out: dir, platforms: strings.Split(*list, ","), dry: *dry, log: os.Stderr}
		err = r.make(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		return 1
	}
	return 0
}
