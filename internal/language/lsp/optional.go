// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

const makeOptional = "Make the reference optional: while it is empty, the state selects nothing"

// questionMark returns the repair that makes a reference optional, whose range is that of the
// reference with its braces.
func questionMark(d *document, reference ast.Range) repair {
	end := reference.Start + len(strings.TrimRight(d.content[reference.Start:reference.End-1], " \t"))
	return repair{ast.Range{Start: end, End: end}, "?", makeOptional}
}

// optional returns the code action that makes the reference at a place optional. It returns nil
// if that would be a mistake, if something is wrong with the reference, also a note, whose quick
// fix it is, and while packages are not loaded.
func (w *workspace) optional(ctx context.Context, d *document, dir *directory, offset int) *codeAction {
	for ref := range ast.All[*ast.Ref](d.tree) {
		if !touches(ref, offset) || ref.Optional || len(ref.Path) < 2 || ref.Path[0].Text != "target" || !strings.HasSuffix(d.content[ref.Start:ref.End], "}") {
			continue
		}
		for _, found := range dir.list {
			if found.Start.Filename == d.path && ref.Contains(rangeOf(found)) {
				return nil
			}
		}
		r := questionMark(d, ref.Range)
		after := w.repaired(ctx, d, dir, r)
		if len(after.analysis.Pending) > 0 || len(after.list) > len(dir.list) || after.list.Count(diag.Error) > dir.list.Count(diag.Error) {
			return nil
		}
		return &codeAction{Title: r.title, Kind: "refactor", Edit: r.edit(d)}
	}
	return nil
}
