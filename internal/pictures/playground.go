// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/spf13/cobra"
)

func newPlaygroundCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "playground DIRECTORY",
		Short: "Take the picture of the page where documents can be tried",
		Args:  cobra.ExactArgs(1),
		RunE:  func(cmd *cobra.Command, args []string) error { return drawPlayground(cmd.Context(), args[0]) },
	}
}

// buildPlayground makes the page where documents can be tried, from the checkout with the given root,
// and returns its address on the disk.
func buildPlayground(ctx context.Context, root, directory string) (string, error) {
	build := exec.CommandContext(ctx, "go", "run", "./internal/playground/build", directory)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the playground: %w\n%s", err, out)
	}
	return "file://" + filepath.ToSlash(filepath.Join(directory, "index.html")), nil
}

// compiled waits until the page shows what the compiler has found.
func compiled() chromedp.Action { return chromedp.WaitVisible("#drawing") }

// example shows one of the examples of the page.
func example(name string) chromedp.Action {
	return chromedp.Evaluate(fmt.Sprintf(`(() => { const e = document.getElementById("example"); e.value = %q; e.dispatchEvent(new Event("change")); })()`, name), nil)
}

// drawPlayground takes a picture of the page with a mistake.
func drawPlayground(ctx context.Context, directory string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	built, err := os.MkdirTemp("", "playground-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(built) //nolint:errcheck // of temporary files
	address, err := buildPlayground(ctx, ".", built)
	if err != nil {
		return err
	}
	browser, stop, err := newBrowser(ctx)
	if err != nil {
		return err
	}
	defer stop()
	var png []byte
	err = chromedp.Run(browser, screen(1280, 620, "light"), chromedp.Navigate(address), compiled(),
		example("With mistakes"), chromedp.WaitVisible("#mistakes .error"), chromedp.CaptureScreenshot(&png))
	if err != nil {
		return fmt.Errorf("the picture of the playground: %w", err)
	}
	return os.WriteFile(filepath.Join(directory, "playground.png"), png, 0o644)
}
