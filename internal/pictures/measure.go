// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/pictures/stage"
)

func newMeasureCommand() *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{
		Use:   "measure",
		Short: "Measure the page in the browser: the first paint with many objects, and the memory over time",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return measure(cmd.Context(), cmd.OutOrStdout(), lasts) },
	}
	cmd.Flags().DurationVar(&lasts, "for", 10*time.Minute, "how long the memory of the browser is watched")
	return cmd
}

// paths are the views with their addresses, in the order of the page.
func paths(s *stage.Stage) [][2]string {
	return [][2]string{{"overview", ""}, {"objects", "objects"}, {"object", "object?" + s.Address(4)}, {"timeline", "timeline?" + s.Address(4)}}
}

// measure prints the first paint of each view: when the operator has no table of its objects yet, and
// the least of five loads, in turn without and after changes.
func measure(ctx context.Context, out io.Writer, lasts time.Duration) error {
	browser, stop, err := newBrowser(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, objects := range []int{10_000, 100_000} {
		for _, p := range paths(stage.New(1)) {
			s := stage.New(objects) // without a table of the view before
			address, end := s.Serve(make(chan struct{}))
			load := func() (paint float64, err error) {
				err = chromedp.Run(browser, screen(1280, 800, "light"), chromedp.Navigate("about:blank"), chromedp.Navigate(address+p[1]), chromedp.WaitReady(".connection.good"),
					chromedp.Evaluate(`new Promise((done) => { const look = () => { const e = performance.getEntriesByName("first-contentful-paint")[0]; e ? done(e.startTime) : requestAnimationFrame(look); }; look(); })`,
						&paint, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
				return paint, err
			}
			first, err := load()
			const loads, changes = 5, 40
			before, after := math.Inf(1), math.Inf(1)
			for i := 0; i < 2*loads && err == nil; i++ { // in turn, because the load of the machine changes
				if i%2 == 1 {
					for n := range changes {
						s.Change(n * 7)
					}
				}
				var paint float64
				if paint, err = load(); i%2 == 0 {
					before = min(before, paint)
				} else {
					after = min(after, paint)
				}
			}
			if err != nil {
				end()
				return fmt.Errorf("%s: %w", p[0], err)
			}
			fmt.Fprintf(out, "first paint of %s with %d objects: %.0f ms for the first viewer, %.0f ms after that, %.0f ms (%.2f times) after %d changes\n",
				p[0], objects, first, before, after, after/before, changes)
			end()
		}
	}
	return watchMemory(ctx, browser, out, lasts)
}

// watchMemory prints the heap of a page, after a collection, while objects change 50 times a
// second.
func watchMemory(ctx, browser context.Context, out io.Writer, lasts time.Duration) error {
	s := stage.New(1000)
	address, end := s.Serve(make(chan struct{}))
	defer end()
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				s.Change(i * 7)
			}
		}
	}()
	if err := chromedp.Run(browser, chromedp.Navigate(address+"objects"), chromedp.WaitReady(".connection.good")); err != nil {
		return err
	}
	tick := time.NewTicker(max(lasts/10, time.Second))
	defer tick.Stop()
	for began := time.Now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var used float64
		var elements int
		err := chromedp.Run(browser, chromedp.ActionFunc(func(ctx context.Context) (err error) {
			for range 2 {
				if err = heapprofiler.CollectGarbage().Do(ctx); err != nil {
					return err
				}
			}
			used, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
			return err
		}), chromedp.Evaluate(`document.querySelectorAll("*").length`, &elements))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "after %v: %.2f MB of heap in the browser, %d elements\n", time.Since(began).Round(time.Second), used/1e6, elements)
	}
}

func newLookCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "look DIRECTORY [PAGE...]",
		Short: "Take pictures of each view, and of pages such as reports of the simulator, at three widths, light and dark, for a person to look at",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			browser, stop, err := newBrowser(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			s := stage.New(120)
			address, end := s.Serve(make(chan struct{}))
			defer end()
			for _, p := range append(paths(s), [2]string{"missing", "object?" + s.Address(1000)}) {
				if err := look(browser, address+p[1], ".connection.good", filepath.Join(args[0], p[0])); err != nil {
					return err
				}
			}
			for _, page := range args[1:] {
				file, err := filepath.Abs(page)
				if err != nil {
					return err
				}
				name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
				if err := look(browser, "file://"+file, "body", filepath.Join(args[0], name)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// look takes the pictures of a page, when an element of it is there, to files whose names begin so.
func look(browser context.Context, address, element, name string) error {
	for _, width := range []int64{360, 1280, 2560} {
		for _, scheme := range []string{"light", "dark"} {
			var png []byte
			if err := chromedp.Run(browser, screen(width, 900, scheme), chromedp.Navigate(address), chromedp.WaitReady(element), chromedp.FullScreenshot(&png, 100)); err != nil {
				return fmt.Errorf("%s: %w", address, err)
			}
			if err := writeFile(fmt.Sprintf("%s-%d-%s.png", name, width, scheme), func(w io.Writer) error { _, err := w.Write(png); return err }); err != nil {
				return err
			}
		}
	}
	return nil
}
