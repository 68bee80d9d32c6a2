// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// missing is the text of a cell that was not measured.
const missing = "–"

// WriteMarkdown writes the table, then what the rows have as their limits, and how the operators are
// run. A cell is a median, with the spread in parentheses where the samples differ.
func (t *Table) WriteMarkdown(w io.Writer) error {
	var b strings.Builder
	for _, fact := range t.About {
		fmt.Fprintf(&b, "- %s: %s\n", fact.Name, fact.Value)
	}
	b.WriteString("\n| |")
	for _, o := range t.Operators {
		fmt.Fprintf(&b, " %s |", o.Name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(t.Operators)) + "\n")
	beside := make(map[string]bool)
	for _, row := range t.Rows {
		beside[row.Beside] = true
	}
	var limits []string
	for _, row := range t.Rows {
		if beside[row.ID] {
			continue
		}
		fmt.Fprintf(&b, "| %s |", t.title(row))
		for _, o := range t.Operators {
			fmt.Fprintf(&b, " %s |", t.text(row, o.Name))
		}
		b.WriteString("\n")
		if row.Limit != "" {
			limits = append(limits, fmt.Sprintf("- %s: %s\n", row.Title, row.Limit))
		}
	}
	b.WriteString("\nThe least possible:\n\n" + strings.Join(limits, ""))
	b.WriteString("\nHow each is run:\n\n")
	for _, o := range t.Operators {
		fmt.Fprintf(&b, "- `%s`: %s\n", o.Name, o.Setting)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *Table) title(row Row) string {
	if !row.Relative {
		return row.Title
	}
	if row.More {
		return row.Title + ", relative (more is better)"
	}
	return row.Title + ", relative"
}

// text returns the text of a cell.
func (t *Table) text(row Row, operator string) string {
	absolute, ok := SpreadOf(t.Samples(row.ID, operator))
	switch {
	case !ok:
		return missing
	case row.Relative && operator == t.Reference:
		return "1: " + strings.TrimSpace(absolute.text(row.Digits)+" "+row.Unit)
	case row.Relative:
		relative, ok := SpreadOf(t.Relative(row.ID, operator))
		if !ok { // the reference was not measured
			return strings.TrimSpace(absolute.text(row.Digits) + " " + row.Unit)
		}
		return relative.text(2)
	}
	text := absolute.text(row.Digits)
	if with, _ := SpreadOf(t.Samples(row.Beside, operator)); with.Max > 0 {
		text += fmt.Sprintf(" and %s %s", with.text(row.Digits), row.BesideUnit)
	}
	return text
}

// text returns the median, and the spread if it can be seen.
func (s Spread) text(digits int) string {
	median, least, most := number(s.Median, digits), number(s.Min, digits), number(s.Max, digits)
	if least == most {
		return median
	}
	return fmt.Sprintf("%s (%s..%s)", median, least, most)
}

// number formats a value with at most that many digits after the point, without zeros at its end.
func number(value float64, digits int) string {
	text := strconv.FormatFloat(value, 'f', digits, 64)
	if digits == 0 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}
