// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command compile compiles a program, and says how far it is if that takes long:
//
//	go run ./internal/tools/compile bin/ctrlkit ./cmd/ctrlkit
//
// It imports the standard library alone, so that it runs long before the program does.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("usage: compile FILE PACKAGE")
	if len(os.Args) == 3 {
		err = compile(ctx, os.Args[1], os.Args[2])
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
}

func compile(ctx context.Context, file, pkg string) error {
	var words bytes.Buffer
	build := &gobuild.Build{Command: goCommand, Packages: []string{pkg}, Words: &words}
	stop := gobuild.Show(os.Stderr, gobuild.WhenSlow, "building "+pkg, build.String)
	err := build.Run(ctx, "-o", file)
	stop()
	if err != nil && ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("building %s: %w\n%s", pkg, err, &words)
	}
	return nil
}

func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	return command
}
