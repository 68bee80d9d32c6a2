// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package termsvg

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hinshun/vt10x"
)

const (
	cellWidth, cellHeight = 8.4, 18.0
	margin, bar           = 16.0, 34.0
)

const (
	shortest = 100 * time.Millisecond // between two frames
	longest  = 2 * time.Second        // what longer pauses are shortened to
	hold     = 4 * time.Second        // how long the last frame stays before the recording begins again
	maxBytes = 300_000
)

// SVG draws the recording, with a title in the title bar. It leaves out frames to stay below 300,000
// bytes. If not even one frame fits, that is an error.
func SVG(w io.Writer, c Cast, title string) error { return c.picture(w, title, maxBytes) }

func (c Cast) picture(w io.Writer, title string, most int) error {
	for interval := shortest; ; interval *= 2 {
		frames, length, err := c.frames(interval, longest)
		if err != nil {
			return fmt.Errorf("drawing a terminal: %w", err)
		}
		if picture := draw(c.Size, frames, length, title); len(picture) <= most {
			_, err := w.Write(picture)
			return err
		}
		if len(frames) == 1 {
			return errors.New("drawing a terminal: a single frame is larger than the picture may be: use a smaller terminal")
		}
	}
}

// A drawer writes each different row once and lets the frames refer to them.
type drawer struct {
	defs, frames bytes.Buffer
	ids          map[string]int // of the rows, by what they look like
}

func draw(size Size, frames []frame, length time.Duration, title string) []byte {
	d := &drawer{ids: map[string]int{}}
	width, height := float64(size.Columns)*cellWidth, float64(size.Rows)*cellHeight
	for i, f := range frames {
		d.frame(f, float64(i)*width)
	}
	var b bytes.Buffer
	totalWidth, totalHeight := width+2*margin, height+bar+margin
	title = html.EscapeString(printable(title))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%[1]s" height="%[2]s" viewBox="0 0 %[1]s %[2]s" role="img" xml:space="preserve">`+"\n", number(totalWidth), number(totalHeight))
	fmt.Fprintf(&b, "<title>%s</title>\n", cmp.Or(title, "A recorded terminal"))
	b.WriteString("<style>\n" + styleSheet(frames, length, width) + "</style>\n")
	fmt.Fprintf(&b, `<rect width="%s" height="%s" rx="10" class="window"/>`+"\n", number(totalWidth), number(totalHeight))
	b.WriteString(`<g class="buttons"><circle cx="20" cy="17" r="6"/><circle cx="40" cy="17" r="6"/><circle cx="60" cy="17" r="6"/></g>` + "\n")
	if title != "" {
		fmt.Fprintf(&b, `<text x="%s" y="22" text-anchor="middle" class="title">%s</text>`+"\n", number(totalWidth/2), title)
	}
	fmt.Fprintf(&b, "<defs>\n%s</defs>\n", d.defs.String())
	fmt.Fprintf(&b, `<svg x="%s" y="%s" width="%s" height="%s"><g class="film">`+"\n", number(margin), number(bar), number(width), number(height))
	b.Write(d.frames.Bytes())
	b.WriteString("</g></svg>\n</svg>\n")
	return b.Bytes()
}

func (d *drawer) frame(f frame, x float64) {
	fmt.Fprintf(&d.frames, `<g transform="translate(%s)">`, number(x))
	for y, r := range f.rows {
		if len(r) == 0 {
			continue
		}
		look := rowMarkup(r)
		id, known := d.ids[look]
		if !known {
			id = len(d.ids)
			d.ids[look] = id
			fmt.Fprintf(&d.defs, `<g id="r%d">%s</g>`+"\n", id, look)
		}
		fmt.Fprintf(&d.frames, `<use href="#r%d" y="%s"/>`, id, number(float64(y)*cellHeight))
	}
	d.frames.WriteString("</g>\n")
}

// rowMarkup returns the pieces of a row. Each has its width written down, so that the columns stand
// where they stood in the terminal also in a font of another width.
func rowMarkup(r row) string {
	var b strings.Builder
	for _, piece := range r {
		x, width := float64(piece.column)*cellWidth, float64(utf8.RuneCountInString(piece.text))*cellWidth
		if piece.style.bg != vt10x.DefaultBG {
			fmt.Fprintf(&b, `<rect x="%s" width="%s" height="%s" fill="%s"/>`, number(x), number(width), number(cellHeight), color(piece.style.bg))
		}
		if strings.TrimSpace(piece.text) == "" {
			continue
		}
		fmt.Fprintf(&b, `<text x="%s" y="13.5" textLength="%s"%s>%s</text>`, number(x), number(width), styleMarkup(piece.style), html.EscapeString(piece.text))
	}
	return b.String()
}

func styleMarkup(s style) string {
	var b strings.Builder
	if s.fg != vt10x.DefaultFG {
		fmt.Fprintf(&b, ` fill="%s"`, color(s.fg))
	}
	if s.bold {
		b.WriteString(` font-weight="bold"`)
	}
	if s.italic {
		b.WriteString(` font-style="italic"`)
	}
	if s.underline {
		b.WriteString(` text-decoration="underline"`)
	}
	return b.String()
}

const (
	foreground, background = "#d6dde6", "#161b22"
	fonts                  = `ui-monospace,SFMono-Regular,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono","Liberation Mono",monospace`
)

func styleSheet(frames []frame, length time.Duration, width float64) string {
	var b strings.Builder
	// On the film and not on the letters: their own attributes are weaker than any rule, but
	// stronger than what they inherit.
	fmt.Fprintf(&b, ".film{font:14px %s;fill:%s}text{white-space:pre}\n", fonts, foreground)
	fmt.Fprintf(&b, ".window{fill:%s;stroke:#30363d}.buttons{fill:#3d444d}.title{font:13px Helvetica,Arial,sans-serif;fill:#9198a1}\n", background)
	if len(frames) == 1 {
		return b.String()
	}
	total := max(length-frames[0].at, time.Millisecond) + hold
	fmt.Fprintf(&b, ".film{transform:translateX(-%spx)}\n", number(float64(len(frames)-1)*width))
	fmt.Fprintf(&b, "@media (prefers-reduced-motion:no-preference){.film{animation:film %ss steps(1,end) infinite}}\n", number(total.Seconds()))
	b.WriteString("@keyframes film{")
	for i, f := range frames {
		share := float64(f.at-frames[0].at) / float64(total) * 100
		fmt.Fprintf(&b, "%s%%{transform:translateX(-%spx)}", number(share), number(float64(i)*width))
	}
	fmt.Fprintf(&b, "100%%{transform:translateX(-%spx)}}\n", number(float64(len(frames)-1)*width))
	return b.String()
}

// number writes at most three digits after the point and no trailing zeros.
func number(f float64) string {
	text := strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", f), "0"), ".")
	if text == "-0" {
		return "0"
	}
	return text
}

// printable leaves out what XML cannot carry or a terminal does not show.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r&0xfffe == 0xfffe {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// palette are the sixteen colors of the terminal, chosen for the background that is drawn.
var palette = [16]string{
	"#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
	"#8b949e", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#f0f6fc",
}

// color returns a color of the terminal for SVG. Numbers below 256 are those of the xterm palette,
// others red, green and blue.
func color(c vt10x.Color) string {
	switch {
	case c == vt10x.DefaultFG:
		return foreground
	case c == vt10x.DefaultBG:
		return background
	case c < 16:
		return palette[c]
	case c < 232:
		c -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(c/36), level(c/6%6), level(c%6))
	case c < 256:
		grey := 8 + 10*(c-232)
		return fmt.Sprintf("#%02[1]x%02[1]x%02[1]x", grey)
	default:
		return fmt.Sprintf("#%06x", uint32(c)&0xffffff)
	}
}

// level is the brightness of one step of the xterm color cube.
func level(step vt10x.Color) vt10x.Color {
	if step == 0 {
		return 0
	}
	return 55 + 40*step
}
