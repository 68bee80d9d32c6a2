// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package playground is what a page in a browser asks of a document: its mistakes, its layout and its
// picture. Command wasm below it is the program for the browser, and command build makes the page,
// which needs no server.
package playground

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/catalog"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/layered"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing/manager"
)

// fileName is that of the document in diagnostics. The page does not show it.
const fileName = "document" + check.Extension

// A Result is what is known of a document.
type Result struct {
	Mistakes []Mistake `json:"mistakes"`
	// Drawing is an SVG document, empty if the document declares no manager.
	Drawing string `json:"drawing"`
}

// A Mistake is one in the document, or a note.
type Mistake struct {
	// Start and End count UTF-16 code units, as JavaScript does.
	Start    int    `json:"start"`
	End      int    `json:"end"`
	Line     int    `json:"line"`
	Severity string `json:"severity"`
	Code     string `json:"code"`
	Message  string `json:"message"`
	Hint     string `json:"hint"`
}

// Check checks a document against the kinds of the catalog and of the definitions, which are YAML. An
// error is one of the catalog.
func Check(ctx context.Context, kinds *catalog.Catalog, document, definitions string) (Result, error) {
	in := check.Input{Name: "manager", Sources: []check.Source{{File: fileName, Text: []byte(document)}}}
	analysis, err := check.Analyze(ctx, in, kinds.With([]byte(definitions)))
	if err != nil {
		return Result{}, err
	}
	result := Result{Mistakes: []Mistake{}}
	for _, d := range analysis.List {
		result.Mistakes = append(result.Mistakes, mistake(document, d))
	}
	if decls := manager.Declared(analysis.Tree(fileName)); len(decls) > 0 {
		result.Drawing, err = draw(decls)
	}
	return result, err
}

func draw(decls []*ast.Decl) (string, error) {
	var picture strings.Builder
	err := layered.SVG(&picture, manager.Graph("Managers", decls...))
	return picture.String(), err
}

func mistake(document string, d diag.Diagnostic) Mistake {
	return Mistake{
		Start: utf16Length(document[:d.Start.Offset]), End: utf16Length(document[:d.End.Offset]), Line: d.Start.Line,
		Severity: d.Severity().String(), Code: string(d.Code), Message: d.Message, Hint: d.Hint,
	}
}

func utf16Length(text string) int {
	n := utf8.RuneCountInString(text)
	for _, r := range text {
		if r > 0xFFFF {
			n++
		}
	}
	return n
}

// Format returns the document in its layout, and as it is while its form is wrong.
func Format(document string) string {
	formatted, mistakes := format.Source(fileName, []byte(document))
	if mistakes.HasErrors() {
		return document
	}
	return string(formatted)
}
