// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp

import (
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// diagnostics returns what is wrong with each open document of a directory, by URI. A document with
// nothing wrong has an empty list, which takes the former ones away.
func (d *directory) diagnostics() []diagnosticsParams {
	var all []diagnosticsParams
	for path, doc := range d.documents {
		if !doc.isOpen() {
			continue
		}
		p := diagnosticsParams{URI: doc.uri, Version: doc.version, Diagnostics: []diagnostic{}}
		for _, found := range d.list {
			if found.Start.Filename == path {
				p.Diagnostics = append(p.Diagnostics, d.diagnostic(doc, found))
			}
		}
		all = append(all, p)
	}
	return all
}

var severities = map[diag.Severity]int{diag.Error: severityError, diag.Warning: severityWarning, diag.Note: severityInformation}

func (d *directory) diagnostic(doc *document, found diag.Diagnostic) diagnostic {
	result := diagnostic{
		Range:    doc.span(rangeOf(found)),
		Severity: severities[found.Severity()],
		Code:     string(found.Code),
		Source:   "ctrlkit",
		Message:  found.Message,
	}
	if found.Hint != "" {
		result.Message += "\n" + found.Hint
	}
	switch found.Code {
	case diag.UnusedBind, diag.UnusedAlias, diag.UnusedState:
		result.Tags = []int{tagUnnecessary}
	}
	for _, r := range found.Related {
		if other := d.documents[r.Start.Filename]; other != nil {
			result.RelatedInformation = append(result.RelatedInformation, relatedInformation{
				Location: location{other.uri, other.span(ast.Range{Start: r.Start.Offset, End: r.End.Offset})},
				Message:  r.Message,
			})
		}
	}
	return result
}

func rangeOf(d diag.Diagnostic) ast.Range {
	return ast.Range{Start: d.Start.Offset, End: d.End.Offset}
}
