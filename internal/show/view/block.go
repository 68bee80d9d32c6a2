// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

//go:embed assets
var assets embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"px":    func(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) },
	"clock": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"time": func(t time.Time) template.HTML {
		if t.IsZero() {
			return ""
		}
		return template.HTML(fmt.Sprintf(`<time datetime="%s">%s</time>`, t.UTC().Format(time.RFC3339Nano), t.UTC().Format("15:04:05"))) //nolint:gosec // of a time
	},
}).ParseFS(assets, "assets/*.html"))

// A block is an element of the page with an id, which the stream replaces when it changes. Those
// within a block stand in its element, after what its template has there.
type block struct {
	id     string
	html   string // of the element without those within
	within []block
}

// slot is where a template has room for the blocks within its element.
const slot = "<slot></slot>"

// render makes a block with a template, which gets the id and the data as .ID and .D.
func render(id, name string, data any, within ...block) block {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, name, struct {
		ID string
		D  any
	}{id, data}); err != nil { // a mistake in a template, which tests find
		text.Reset()
		fmt.Fprintf(&text, `<p id="%s" class="problem">%s</p>`, template.HTMLEscapeString(id), template.HTMLEscapeString(err.Error()))
	}
	quoted := `id="` + template.HTMLEscapeString(id) + `"`
	html := strings.Replace(strings.TrimSpace(printable.JSON(text.String())), quoted, quoted+" data-live", 1)
	return block{id: id, html: html, within: within}
}

// idOf returns an id for an element about something with a text as its key.
func idOf(prefix string, key any) string {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, key) // never fails
	return prefix + strconv.FormatUint(h.Sum64(), 36)
}

// write writes the element with those within.
func (b *block) write(w io.Writer) {
	before, after, ok := strings.Cut(b.html, slot)
	_, _ = io.WriteString(w, before) // the viewer has gone
	if !ok {
		return
	}
	for i := range b.within {
		b.within[i].write(w)
	}
	_, _ = io.WriteString(w, after)
}

// A shown page is what a viewer has: the blocks by id, and the ids within each.
type shown struct {
	html   map[string]string
	within map[string][]string
}

func showing(root block) shown {
	s := shown{html: map[string]string{}, within: map[string][]string{}}
	s.add(root)
	return s
}

func (s *shown) add(b block) {
	s.html[b.id] = b.html
	if len(b.within) == 0 && !strings.Contains(b.html, slot) {
		return
	}
	ids := make([]string, 0, len(b.within))
	for _, inner := range b.within {
		ids = append(ids, inner.id)
		s.add(inner)
	}
	s.within[b.id] = ids
}

// version is the same for the same content.
func (s *shown) version() string {
	sum := uint64(0)
	for id, html := range s.html { // in any order
		h := fnv.New64a()
		_, _ = io.WriteString(h, id+"\x00"+html+"\x00"+strings.Join(s.within[id], ","))
		sum += h.Sum64()
	}
	return strconv.FormatUint(sum, 36)
}

// A patch is what the page of a viewer lacks.
type patch struct {
	// Set has the elements that are new or other than before, those within another one after it.
	Set []element `json:"set,omitempty"`
	// Order has the ids within an element, where they are others, or stand in another order.
	Order []order `json:"order,omitempty"`
	// Version is that of the page with the patch.
	Version string `json:"version"`
}

type element struct {
	ID   string `json:"id"`
	HTML string `json:"html"`
}

type order struct {
	ID     string   `json:"id"`
	Within []string `json:"within"`
}

// patchOf returns what leads from what a viewer has to a page, nil if that is nothing.
func patchOf(before shown, root *block, now shown) *patch {
	p := &patch{}
	var walk func(b *block)
	walk = func(b *block) {
		other := before.html[b.id] != b.html
		if other {
			p.Set = append(p.Set, element{b.id, strings.Replace(b.html, slot, "", 1)})
		}
		if within, ok := now.within[b.id]; ok && (other || !slices.Equal(before.within[b.id], within)) {
			p.Order = append(p.Order, order{b.id, within})
		}
		for i := range b.within {
			walk(&b.within[i])
		}
	}
	walk(root)
	if len(p.Set) == 0 && len(p.Order) == 0 {
		return nil
	}
	p.Version = now.version()
	return p
}

// event returns the patch as a server-sent event.
func (p *patch) event() []byte {
	text, err := json.Marshal(p) // escapes line breaks
	if err != nil {              // of strings alone, which never fails
		return nil
	}
	return fmt.Appendf(nil, "event: patch\ndata: %s\n\n", text)
}
