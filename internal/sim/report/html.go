// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

//go:embed page.html
var pageText string

// page is the page of HTML. It needs nothing but itself, and no script.
var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"plural": plural, "number": number,
	"line":    func(f Finding) string { return f.line() },
	"located": func(f Finding) string { return f.Example.located() },
	"faults":  func(f Finding) string { return faultsOf(f.others()) },
	"base":    func(f Finding) string { return base(f.Example.Write.Site()) },
	"inc":     func(i int) int { return i + 1 },
	"others":  func(f Finding) int { return len(f.others()) },
	"slug":    func(class string) string { return strings.ReplaceAll(class, " ", "-") },
	"kind":    kindOfLine,
	"join":    strings.Join,
	"picture": func(s *Simulation, f Finding) *picture { return newPicture(s.Without, &f.Example) },
	"seconds": func(s float64) string {
		if s < 10 {
			return fmt.Sprintf("%.1f s", s)
		}
		return fmt.Sprintf("%.0f s", s)
	},
}).Parse(pageText))

// base returns a line of code without the directory of its file.
func base(site string) string {
	if site == "" {
		return ""
	}
	return path.Base(site)
}

// kindOfLine returns the class by which a line of a trace or of a change is colored.
func kindOfLine(line string) string {
	switch {
	case strings.HasPrefix(line, "+ "):
		return "added"
	case strings.HasPrefix(line, "- "):
		return "removed"
	case strings.HasPrefix(line, "~ "):
		return "changed"
	case strings.HasPrefix(strings.TrimSpace(line), "..."):
		return "gap"
	}
	switch what(line) {
	case "fault":
		return "fault"
	case "oracle":
		return "violation"
	case "write", "call":
		return "write"
	}
	return "line"
}

// HTML writes the document as one page.
func (d *Document) HTML(w io.Writer) error {
	type simulation struct {
		*Simulation
		ID int
	}
	var list []simulation
	for i := range d.Simulations {
		list = append(list, simulation{&d.Simulations[i], i + 1})
	}
	if err := page.Execute(printable.NewWriter(w), list); err != nil {
		return fmt.Errorf("writing a page: %w", err)
	}
	return nil
}
