// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package vet

import (
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
)

// Analyzers returns all analyzers, ordered by name. The URL of each leads to its explanation.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{
		backgroundAnalyzer, bypassAnalyzer, clockAnalyzer, discardedAnalyzer, hooksAnalyzer, sharedAnalyzer, undeclaredAnalyzer, unwatchedAnalyzer,
	}
}

// newAnalyzer returns an analyzer that the guide explains, with examples, and with what it does not
// report.
func newAnalyzer(name string, run func(*analysis.Pass) (any, error), doc string) *analysis.Analyzer {
	return &analysis.Analyzer{
		Name: name, Doc: doc, Run: run, Requires: []*analysis.Analyzer{inspect.Analyzer, programs},
		URL: "https://github.com/ctrlkit/ctrlkit/blob/main/docs/check.md#" + name,
	}
}

// A place is a line of a file; line 0 is the whole file.
type place struct {
	file string
	line int
}

func placeOf(pass *analysis.Pass, pos token.Pos) place {
	p := pass.Fset.Position(pos)
	return place{p.Filename, p.Line}
}

// An exemption is the form of a comment that exempts its line from one or more analyzers. Without a
// reason it exempts nothing.
var exemption = regexp.MustCompile(`^//nolint:([\w,-]+)\s*//\s*\S`)

// A reporter reports the findings of an analyzer, except on lines and in files that a comment
// exempts.
type reporter struct {
	pass   *analysis.Pass
	exempt map[place]bool
}

func newReporter(pass *analysis.Pass) *reporter {
	r := &reporter{pass: pass, exempt: map[place]bool{}}
	for _, file := range pass.Files {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if !exempts(comment.Text, pass.Analyzer.Name) {
					continue
				}
				at := placeOf(pass, comment.Pos())
				if comment.Pos() < file.Package {
					at.line = 0
				}
				r.exempt[at] = true
			}
		}
	}
	return r
}

// exempts reports whether a comment is an exemption from the analyzer.
func exempts(comment, analyzer string) bool {
	match := exemption.FindStringSubmatch(comment)
	if match == nil {
		return false
	}
	for name := range strings.SplitSeq(match[1], ",") {
		if name == analyzer {
			return true
		}
	}
	return false
}

// allows reports whether a finding at a node is reported.
func (r *reporter) allows(node ast.Node) bool {
	begin, end := placeOf(r.pass, node.Pos()), placeOf(r.pass, node.End())
	return !r.exempt[begin] && !r.exempt[end] && !r.exempt[place{begin.file, 0}]
}

func (r *reporter) report(node ast.Node, message string, fixes ...analysis.SuggestedFix) {
	if r.allows(node) {
		r.pass.Report(analysis.Diagnostic{Pos: node.Pos(), End: node.End(), Message: message, SuggestedFixes: fixes})
	}
}

// placeText returns a place as a message names it: the file without its directory, and the line.
func placeText(pass *analysis.Pass, pos token.Pos) string {
	p := pass.Fset.Position(pos)
	return fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
}

// replace is a fix that replaces a node.
func replace(message string, node ast.Node, text string) analysis.SuggestedFix {
	return analysis.SuggestedFix{Message: message, TextEdits: []analysis.TextEdit{{Pos: node.Pos(), End: node.End(), NewText: []byte(text)}}}
}
