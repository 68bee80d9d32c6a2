// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// An Option changes how a workflow is drawn. An option that means nothing to a format is ignored by
// it.
type Option func(*config)

type config struct {
	title     string
	outcomes  outcomes
	observed  bool
	direction drawing.Direction
	symbols   symbols
	color     bool
}

func newConfig(workflow outline.Node, opts []Option) *config {
	c := &config{symbols: unicodeSymbols}
	for _, opt := range opts {
		opt(c)
	}
	c.outcomes = c.outcomes.spread(workflow)
	return c
}

// WithTitle names the drawing: a line above the text, a title in Mermaid, and what a screen reader
// says of an SVG.
func WithTitle(title string) Option { return func(c *config) { c.title = title } }

// WithOutcomes marks every action with the outcome that was recorded until now. An action without
// one has not run.
func WithOutcomes(r *Recorder) Option { return marked(r.outcomes()) }

func marked(o outcomes) Option { return func(c *config) { c.outcomes, c.observed = o, true } }

// WithLeftToRight draws the workflow from left to right instead of from top to bottom. It means
// nothing to [Text].
func WithLeftToRight() Option { return func(c *config) { c.direction = drawing.LeftRight } }

// WithASCII draws [Text] without any character outside of ASCII, save those in the labels. It means
// nothing to other formats.
func WithASCII() Option { return func(c *config) { c.symbols = asciiSymbols } }

// WithColors adds the escape sequences for colors that terminals understand to [Text]. It means
// nothing to other formats.
func WithColors() Option { return func(c *config) { c.color = true } }
