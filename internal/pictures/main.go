// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

// Command pictures makes the pictures of the documentation:
//
//	go run ./internal/pictures workflows docs/images
//	go run ./internal/pictures record --size 100x30 --for 45s demo.cast make demo
//	go run ./internal/pictures terminal demo.cast docs/images/demo.svg
//
// A recording is made once, by a person who watches it; the picture is made from the recording,
// always the same.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

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
	root.AddCommand(newWorkflowsCommand(), newRecordCommand(), newTerminalCommand())
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

func newRecordCommand() *cobra.Command {
	var size string
	var limit time.Duration
	cmd := &cobra.Command{
		Use:   "record CAST COMMAND...",
		Short: "Record what a command shows in a terminal",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var s termsvg.Size
			if _, err := fmt.Sscanf(size, "%dx%d", &s.Columns, &s.Rows); err != nil {
				return fmt.Errorf("--size %q: want columns and rows, as in 100x30", size)
			}
			cast, err := termsvg.Record(cmd.Context(), s, args[1:], limit)
			if err != nil {
				return err
			}
			return writeFile(args[0], cast.Write)
		},
	}
	cmd.Flags().StringVar(&size, "size", "100x30", "columns and rows of the terminal")
	cmd.Flags().DurationVar(&limit, "for", time.Minute, "press Ctrl-C after this time")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func newTerminalCommand() *cobra.Command {
	var o termsvg.Options
	var from, until time.Duration
	var still bool
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
			cast = cast.Cut(from, until)
			return writeFile(args[1], func(w io.Writer) error {
				if still {
					return termsvg.Still(w, cast, o)
				}
				return termsvg.SVG(w, cast, o)
			})
		},
	}
	cmd.Flags().StringVar(&o.Title, "title", "", "what stands in the title bar")
	cmd.Flags().DurationVar(&o.Interval, "interval", 0, "the shortest time between two frames (default 100ms)")
	cmd.Flags().DurationVar(&o.MaxIdle, "idle", 0, "what longer pauses are shortened to (default 2s)")
	cmd.Flags().DurationVar(&o.Hold, "hold", 0, "how long the last frame stays (default 4s)")
	cmd.Flags().IntVar(&o.MaxBytes, "max-bytes", 0, "the size that the picture may have (default 300000)")
	cmd.Flags().DurationVar(&from, "from", 0, "leave out what was shown before, but not what is still on the screen")
	cmd.Flags().DurationVar(&until, "until", 0, "leave out what was shown after")
	cmd.Flags().BoolVar(&still, "still", false, "draw the last frame only")
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
