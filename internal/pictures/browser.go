// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

var errNoBrowser = errors.New("there is no Chromium on this machine: on Debian, apt-get install chromium")

// newBrowser starts Chromium without a window, until stop is called.
func newBrowser(ctx context.Context) (browser context.Context, stop func(), err error) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			program = path
			break
		}
	}
	if program == "" {
		return nil, nil, errNoBrowser
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, //nolint:gocritic // a copy
		chromedp.Flag("disable-quic", true), chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-component-update", true))
	allocated, end := chromedp.NewExecAllocator(ctx, options...)
	browser, cancel := chromedp.NewContext(allocated, chromedp.WithErrorf(func(string, ...any) {})) // events of a newer version
	stop = func() { cancel(); end() }
	if err := chromedp.Run(browser); err != nil {
		stop()
		return nil, nil, fmt.Errorf("starting %s: %w", program, err)
	}
	return browser, stop, nil
}

// screen sets the size of a page, and its scheme: "light" or "dark".
func screen(width, height int64, scheme string) chromedp.Action {
	return chromedp.Tasks{
		chromedp.EmulateViewport(width, height, chromedp.EmulateScale(1)),
		emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}),
	}
}
