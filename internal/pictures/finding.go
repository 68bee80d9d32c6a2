// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/chromedp"
	"github.com/spf13/cobra"
)

func newFindingCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "finding DIRECTORY",
		Short: "Take the picture of a finding from the report of the simulator on an operator with a bug",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return drawFinding(cmd.Context(), args[0]) },
	}
}

// drawFinding explores a mutant and takes the picture of its worst finding.
func drawFinding(ctx context.Context, directory string) error {
	dir, err := os.MkdirTemp("", "finding-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	page := filepath.Join(dir, "report.html")
	explore := exec.CommandContext(ctx, "go", "test", "-vet=off", "./sim/internal/mutants", "-run=^TestDrawn$", "-drawn=swallows-call-errors", "-sim.html="+page)
	output, _ := explore.CombinedOutput() // it fails, because it finds something
	if _, err := os.Stat(page); err != nil {
		return fmt.Errorf("the mutant has no report: %w\n%s", err, output)
	}
	browser, stop, err := newBrowser(ctx)
	if err != nil {
		return err
	}
	defer stop()
	const picture = `article .runs`
	var png []byte
	if err := chromedp.Run(browser, screen(1280, 900, "light"), chromedp.Navigate("file://"+page), chromedp.Screenshot(picture, &png, chromedp.ByQuery)); err != nil {
		return fmt.Errorf("the report %s:\n%s\n%w", page, output, err)
	}
	return writeFile(filepath.Join(directory, "finding.png"), func(w io.Writer) error { _, err := w.Write(png); return err })
}
