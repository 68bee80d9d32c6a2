// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"context"
	"maps"
	"regexp"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// quoted are the names that a hint proposes, written the words after which it says what to write.
var (
	quoted  = regexp.MustCompile(`^did you mean "([^"]+)"\?$`)
	written = regexp.MustCompile(`^write (\S+)$`)
)

// A repair replaces a range of a document.
type repair struct {
	ast.Range
	with  string
	title string
}

// quickFixes returns what the hint of a diagnostic proposes, if less is wrong then.
func (w *workspace) quickFixes(ctx context.Context, d *document, dir *directory, found diag.Diagnostic) []codeAction {
	for _, r := range repairs(d, found) {
		if !w.repaired(ctx, d, dir, r).isBetter(dir) {
			continue
		}
		return []codeAction{{
			Title: r.title, Kind: "quickfix", IsPreferred: found.Severity() != diag.Note,
			Diagnostics: []diagnostic{dir.diagnostic(d, found)},
			Edit:        r.edit(d),
		}}
	}
	return nil
}

func (r repair) edit(d *document) workspaceEdit {
	return workspaceEdit{Changes: map[string][]textEdit{d.uri: {{d.span(r), r.with}}}}
}

// repairs returns what a hint may mean, the likeliest first.
func repairs(d *document, found diag.Diagnostic) []repair {
	at := rangeOf(found)
	switch found.Code {
	case diag.UnusedBind, diag.UnusedAlias, diag.DuplicateSelector, diag.UnusedState, diag.NamespaceOfClusterScoped:
		return []repair{{d.lines(at), "", "Remove it"}}
	case diag.LeftOut:
		line, added := d.lines(at), strings.TrimPrefix(found.Hint, "add ")
		indent := d.content[line.Start : line.Start+len(d.content[line.Start:line.End])-len(strings.TrimLeft(d.content[line.Start:line.End], " \t"))]
		return []repair{{ast.Range{Start: line.End, End: line.End}, indent + added + "\n", "Add " + added}}
	case diag.MayBeEmpty:
		return []repair{questionMark(d, at)}
	case diag.MissingBrace:
		return []repair{{at, " {", "Add a {"}}
	case diag.UnclosedArguments:
		line := d.lines(at)
		end := line.Start + len(strings.TrimRight(d.content[line.Start:line.End], " \t\r\n"))
		return []repair{{ast.Range{Start: end, End: end}, ")", "Add a )"}}
	case diag.UnclosedBlock:
		end := len(d.content)
		return []repair{{ast.Range{Start: end, End: end}, "\n}\n", "Add a }"}}
	case diag.StrayBrace:
		return []repair{{at, "", "Remove the }"}}
	}
	proposal := quoted.FindStringSubmatch(found.Hint)
	if proposal == nil {
		proposal = written.FindStringSubmatch(found.Hint)
	}
	if proposal == nil {
		return nil
	}
	// A hint proposes another text for what is underlined, or for what that is a part of.
	ranges := []ast.Range{at}
	for node := range ast.All[ast.Node](d.tree) {
		switch n := node.(type) {
		case *ast.Ref:
			if n.Contains(at) && strings.HasPrefix(proposal[1], "${") {
				ranges = []ast.Range{n.Range}
			}
		case *ast.Word, *ast.Selector:
			if r := node.Span(); r.Contains(at) && r != at {
				ranges = append(ranges, r)
			}
		}
	}
	all := make([]repair, len(ranges))
	for i, r := range ranges {
		all[i] = repair{r, proposal[1], "Write " + proposal[1]}
	}
	return all
}

// lines returns the lines of a range, with the end of the last one. Those of a state are all of its
// block.
func (d *document) lines(at ast.Range) ast.Range {
	for st := range ast.All[*ast.State](d.tree) {
		if st.Name.Range == at {
			at = st.Span()
		}
	}
	r := ast.Range{Start: strings.LastIndexByte(d.content[:at.Start], '\n') + 1, End: len(d.content)}
	if next := strings.IndexByte(d.content[at.End:], '\n'); next >= 0 {
		r.End = at.End + next + 1
	}
	return r
}

// isBetter reports whether less is wrong with a directory than with another one.
func (d *directory) isBetter(than *directory) bool {
	return len(d.list) < len(than.list) && d.list.Count(diag.Error) <= than.list.Count(diag.Error)
}

// repaired returns a directory in which a document has the repair.
func (w *workspace) repaired(ctx context.Context, d *document, dir *directory, r repair) *directory {
	repaired := *dir
	repaired.documents = maps.Clone(dir.documents)
	content := d.content[:r.Start] + r.with + d.content[r.End:]
	repaired.documents[d.path] = newDocument(d.path, d.uri, d.version, newText(content, w.utf8))
	w.analyze(ctx, &repaired)
	return &repaired
}
