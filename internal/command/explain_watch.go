// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
)

// watchInterval is the time between two questions.
const watchInterval = 2 * time.Second

// An explainWatch asks for an explanation again and again.
type explainWatch struct {
	ask  func(context.Context) (*explanation.Explanation, error)
	text func(*explanation.Explanation) (string, error)

	said string // the answer that was the last to differ
	at   time.Time
}

// watchExplanation shows what changes until the end of the context. An error of the first question ends
// it. A terminal is redrawn with each answer, and keeps the last one.
func (f *explainFlags) watchExplanation(cmd *cobra.Command, ask func(context.Context) (*explanation.Explanation, error)) error {
	w := &explainWatch{ask: ask, text: f.printed}
	text, _, err := w.next(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	if f.output.value == "text" {
		if terminal, ok := screenOf(out); ok {
			draw := func() {
				terminal.draw(func(width, height int) []string { return page(text, "Ctrl-C ends", width, height) })
			}
			restore := terminal.open()
			draw()
			err = w.follow(cmd.Context(), func(now string, _ bool, err error) error {
				if text = now; err != nil {
					text = err.Error() + "\n"
				}
				draw()
				return nil
			})
			restore()
			_, _ = io.WriteString(out, text) //nolint:errcheck // it has ended
			return err
		}
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return w.follow(cmd.Context(), func(text string, changed bool, err error) error {
		switch {
		case !changed:
			return nil
		case err != nil:
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", cmd.Root().DisplayName(), err)
			return nil
		case f.output.value == "text":
			text = "\n--- " + w.at.Format(time.RFC3339) + "\n" + text
		}
		_, err = io.WriteString(out, text)
		return err
	})
}

// follow shows the answers after the first one, until the end of the context.
func (w *explainWatch) follow(ctx context.Context, show func(text string, changed bool, err error) error) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		text, changed, err := w.next(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := show(text, changed, err); err != nil {
			return err
		}
	}
}

// next returns the answer, or why there is none, and whether more than the ages in it has changed.
func (w *explainWatch) next(ctx context.Context) (text string, changed bool, err error) {
	x, err := w.ask(ctx)
	if err != nil {
		changed = w.said != err.Error()
		w.said = err.Error()
		return "", changed, err
	}
	now := x.Now
	if !w.at.IsZero() {
		x.Now = w.at
	}
	then, err := w.text(x)
	if err != nil {
		return "", false, err
	}
	x.Now = now
	if text, err = w.text(x); then != w.said {
		changed, w.said, w.at = true, text, now
	}
	return text, changed, err
}

// printed returns an explanation as it is printed.
func (f *explainFlags) printed(x *explanation.Explanation) (string, error) {
	var text strings.Builder
	if f.output.value == "json" {
		err := writeJSON(&text, x)
		return text.String(), err
	}
	err := x.Write(&text)
	return text.String(), err
}
