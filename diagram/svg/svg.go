// Package svg draws workflows as SVG.
//
// Deprecated: package diagram does the same; it has not always.
package svg

import (
	"context"
	"io"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/diagram"
)

// Workflow writes the workflow as an SVG document, unless ctx is done.
//
// Deprecated: use [diagram.SVG], which does the same.
func Workflow(ctx context.Context, w io.Writer, workflow ctrlkit.Node, opts ...diagram.Option) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return diagram.SVG(w, workflow, opts...)
}
