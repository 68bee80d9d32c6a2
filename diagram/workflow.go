// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diagram

import (
	"io"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/flow"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/layered"
)

// DOT writes the workflow in the language of Graphviz.
func DOT(w io.Writer, workflow ctrlkit.Node, opts ...Option) error {
	return drawing.DOT(w, newConfig(workflow, opts).draw(workflow))
}

// Mermaid writes the workflow as a Mermaid flowchart, which GitHub draws in any Markdown text.
func Mermaid(w io.Writer, workflow ctrlkit.Node, opts ...Option) error {
	return drawing.Mermaid(w, newConfig(workflow, opts).draw(workflow))
}

// SVG writes the workflow as an SVG document. It contains no scripts and refers to no other files,
// so that it can stand in a README, and it follows the light or dark color scheme of the reader's
// system.
func SVG(w io.Writer, workflow ctrlkit.Node, opts ...Option) error {
	return layered.SVG(w, newConfig(workflow, opts).draw(workflow))
}

func (c *config) draw(workflow outline.Node) *drawing.Graph {
	g := &drawing.Graph{Title: c.title, Direction: c.direction}
	var outcome flow.Outcome
	if c.observed {
		outcome = func(action string) (drawing.Tone, []string) {
			o := c.outcomes.of(action)
			return o.State.tone(), []string{unicodeSymbols.of(o.State) + " " + o.String()}
		}
	}
	flow.Draw(g, &g.Root, workflow, outcome)
	return g
}
