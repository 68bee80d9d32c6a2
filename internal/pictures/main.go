// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command pictures makes the pictures of the documentation:
//
//	go run ./internal/pictures workflows docs/images
//	go run ./internal/pictures terminal docs/images/demo.cast docs/images/demo.svg
//	go run ./internal/pictures page docs/images
//	go run ./internal/pictures finding docs/images
//	go run ./internal/pictures playground docs/images
//	go run ./internal/pictures look DIRECTORY [PAGE...]
//	go run ./internal/pictures measure
//
// The last five need Chromium: look is for a person who changes the page, and measure prints what
// docs/operate.md says of its cost. The pictures of the page are of a real run, so that they differ
// in their times.
//
// A recording is made once, by a person who watches it; the picture is made from the recording,
// always the same:
//
//	asciinema rec --output-format asciicast-v2 --window-size 100x30 --command "make demo" docs/images/demo.cast
package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/pictures/termsvg"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	root := newCommand()
	if err := root.ExecuteContext(ctx); err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{Use: "pictures", Short: "Make the pictures of the documentation", SilenceUsage: true}
	root.AddCommand(newWorkflowsCommand(), newTerminalCommand(), newPageCommand(), newFindingCommand(), newPlaygroundCommand(), newLookCommand(), newMeasureCommand())
	return root
}

func newWorkflowsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "workflows DIRECTORY",
		Short: "Draw the workflow of the CronJob operator, as it is written and after runs that end in different ways",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return drawWorkflows(cmd.Context(), args[0]) },
	}
}

func newPageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "page DIRECTORY",
		Short: "Take pictures of the page of an operator that runs in memory",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return drawPage(cmd.Context(), args[0]) },
	}
}

func newTerminalCommand() *cobra.Command {
	var title string
	cmd := &cobra.Command{
		Use:   "terminal CAST SVG",
		Short: "Draw a recorded terminal",
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			cast, err := termsvg.ReadCast(file)
			if err != nil {
				return err
			}
			return writeFile(args[1], func(w io.Writer) error { return termsvg.SVG(w, cast, title) })
		},
	}
	cmd.Flags().StringVar(&title, "title", "", "what stands in the title bar")
	return cmd
}

// writeFile writes all of a file or none of it.
func writeFile(name string, write func(io.Writer) error) error {
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	return os.WriteFile(name, content.Bytes(), 0o644) //nolint:gosec // a picture is public
}
