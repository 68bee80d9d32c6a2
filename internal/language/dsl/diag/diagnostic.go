// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diag

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/token"
	"slices"
)

// Severity is whether a diagnostic makes a document unusable.
type Severity int

const (
	// Error means that nothing can be generated from the document.
	Error Severity = iota + 1
	// Warning means that the document has a meaning, but probably not the intended one.
	Warning
	// Note means that nothing is wrong: it says what a document costs, or what its generated code
	// takes.
	Note
)

// String returns "error", "warning" or "note".
func (s Severity) String() string {
	return map[Severity]string{Error: "error", Warning: "warning", Note: "note"}[s]
}

// A Diagnostic is one mistake in one place.
type Diagnostic struct {
	Code Code
	// Start and End enclose the smallest piece that is wrong. End is after its last byte. Columns
	// count bytes from 1, as in the Go tools.
	Start, End token.Position
	// Message is what was found and what was expected, in lower case.
	Message string
	// Hint is the remedy, often a near name. It may be empty.
	Hint string
	// Related are other places that explain this one.
	Related []Related
}

// A Related is a place that explains a diagnostic, such as the first of two declarations of one
// name.
type Related struct {
	Start, End token.Position
	Message    string
}

// Severity returns the severity of the diagnostic's code.
func (d Diagnostic) Severity() Severity { return d.Code.Severity() }

// String returns the first line of the diagnostic as the command prints it, without the source.
func (d Diagnostic) String() string {
	return fmt.Sprintf("%s: %s%s [%s]", position(d.Start), label(d.Severity()), d.Message, d.Code)
}

func label(s Severity) string {
	if s == Error {
		return ""
	}
	return s.String() + ": "
}

func position(p token.Position) string {
	return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
}

// MarshalJSON writes the form for editors. Its field names are stable.
func (d Diagnostic) MarshalJSON() ([]byte, error) {
	out := jsonDiagnostic{
		Code:     d.Code,
		Severity: d.Severity().String(),
		Message:  brief(d.Message),
		Hint:     brief(d.Hint),
		jsonSpan: newJSONSpan(d.Start, d.End),
	}
	for _, r := range d.Related {
		out.Related = append(out.Related, jsonRelated{Message: brief(r.Message), jsonSpan: newJSONSpan(r.Start, r.End)})
	}
	return json.Marshal(out)
}

type jsonDiagnostic struct {
	Code     Code   `json:"code"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	jsonSpan
	Related []jsonRelated `json:"related,omitempty"`
}

type jsonRelated struct {
	Message string `json:"message"`
	jsonSpan
}

type jsonSpan struct {
	File  string       `json:"file"`
	Start jsonPosition `json:"start"`
	End   jsonPosition `json:"end"`
}

// jsonPosition counts lines and columns (bytes) from 1 and offsets (bytes) from 0.
type jsonPosition struct {
	Line   int `json:"line"`
	Column int `json:"column"`
	Offset int `json:"offset"`
}

func newJSONSpan(start, end token.Position) jsonSpan {
	return jsonSpan{
		File:  start.Filename,
		Start: jsonPosition{start.Line, start.Column, start.Offset},
		End:   jsonPosition{end.Line, end.Column, end.Offset},
	}
}

// A List is the diagnostics of one or more documents.
type List []Diagnostic

// Sort sorts the list by file, position and code, drops duplicates, and returns the list.
func (l List) Sort() List {
	slices.SortStableFunc(l, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Start.Filename, b.Start.Filename),
			cmp.Compare(a.Start.Offset, b.Start.Offset),
			cmp.Compare(a.End.Offset, b.End.Offset),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.CompactFunc(l, func(a, b Diagnostic) bool {
		return a.Start == b.Start && a.End == b.End && a.Code == b.Code && a.Message == b.Message
	})
}

// HasErrors reports whether a diagnostic of severity Error is in the list.
func (l List) HasErrors() bool { return l.Count(Error) > 0 }

// Problems returns the list without the notes.
func (l List) Problems() List {
	return slices.DeleteFunc(slices.Clone(l), func(d Diagnostic) bool { return d.Severity() == Note })
}

// Count returns the number of diagnostics of the severity.
func (l List) Count(s Severity) int {
	n := 0
	for _, d := range l {
		if d.Severity() == s {
			n++
		}
	}
	return n
}
