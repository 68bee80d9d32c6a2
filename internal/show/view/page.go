// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"html/template"
	"io"
	"slices"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

// A frame is what every page has around its content.
type frame struct {
	Title, Name, Current string
	Version              string
	Content              template.HTML
	Filter               filter
	Kinds                []string
	Namespaces           []string
}

// writePage writes a whole page.
func writePage(w io.Writer, v *viewing, name, content, version string) error {
	f := frame{
		Title: v.page.title, Name: v.server.options.Name, Current: name, Version: version,
		Content: template.HTML(content), Filter: filterOf(v.query), //nolint:gosec // made by templates
	}
	if v.page.needsObject {
		f.Title = objectOf(v.query).String()
	}
	for _, t := range v.table.tallies() {
		f.Kinds = append(f.Kinds, t.Kind.Kind)
	}
	if k := f.Filter.Kind; k != "" && !slices.Contains(f.Kinds, k) { // what the address says is chosen
		f.Kinds = append(f.Kinds, k)
	}
	return templates.ExecuteTemplate(printable.NewWriter(w), "page", f)
}
