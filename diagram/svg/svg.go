// Package svg draws workflows as SVG: boxes and arrows that Graphviz has laid out.
//
// It is apart from package diagram because Graphviz comes with it, as WebAssembly that is compiled when the process starts: one to two
// seconds the first time on a machine, some fifty milliseconds later. Import it in tests and tools, not in an operator.
package svg

import (
	"bytes"
	"context"
	"io"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
	"github.com/ctrlkit/ctrlkit/internal/drawing/graphviz"
)

// Workflow writes the workflow as an SVG document. It contains no scripts and refers to no other files, so that it can stand
// in a README, and it follows the light or dark colour scheme of whoever looks at it.
func Workflow(ctx context.Context, w io.Writer, workflow ctrlkit.Node, opts ...diagram.Option) error {
	var dot bytes.Buffer
	if err := diagram.DOT(&dot, workflow, opts...); err != nil {
		return err
	}
	picture, err := graphviz.SVG(ctx, dot.Bytes())
	if err != nil {
		return err
	}
	_, err = w.Write(picture)
	return err
}
