// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package termsvg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"
	"pgregory.net/rapid"
)

func castOf(size Size, texts ...string) Cast {
	c := Cast{Size: size}
	for i, text := range texts {
		c.Events = append(c.Events, Event{At: time.Duration(i) * time.Second, Text: text})
	}
	return c
}

// screen returns the text of a frame, with a dot for every blank before a piece.
func screen(f frame) string {
	var lines []string
	for _, r := range f.rows {
		line := ""
		for _, piece := range r {
			line += strings.Repeat(".", piece.column-len([]rune(line))) + piece.text
		}
		lines = append(lines, line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

func TestFrames(t *testing.T) {
	c := castOf(Size{12, 3}, "one", "\rtwo\n", "", "\x1b[2;3Hab  c", "\x1b[2J\x1b[1;1Hend")
	frames, length, err := c.frames(100*time.Millisecond, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	type shown struct {
		At     time.Duration
		Screen string
	}
	var got []shown
	for _, f := range frames {
		got = append(got, shown{f.at, screen(f)})
	}
	want := []shown{{0, "one"}, {time.Second, "two"}, {3 * time.Second, "two\n..ab  c"}, {4 * time.Second, "end"}}
	if diff := cmp.Diff(want, got); diff != "" || length != 4*time.Second {
		t.Errorf("length %s (-want +got):\n%s", length, diff)
	}
}

func TestPausesAreShortened(t *testing.T) {
	c := Cast{Size: Size{10, 2}, Events: []Event{{0, "a"}, {time.Hour, "b"}, {time.Hour + time.Second, "c"}}}
	frames, length, err := c.frames(time.Millisecond, 2*time.Second)
	if err != nil || length != 3*time.Second || len(frames) != 3 {
		t.Errorf("length %s, %d frames, %v; want 3s, 3 frames", length, len(frames), err)
	}
}

func TestEventsWithinAnIntervalAreOneFrame(t *testing.T) {
	c := Cast{Size: Size{10, 2}, Events: []Event{{0, "a"}, {10, "b"}, {20, "c"}, {2 * time.Second, "d"}}}
	frames, _, err := c.frames(time.Second, time.Minute)
	if err != nil || len(frames) != 2 || screen(frames[0]) != "abc" {
		t.Errorf("%d frames, %v; want 2, the first of them abc", len(frames), err)
	}
}

func TestFaintLettersAreGrey(t *testing.T) {
	for sequence, want := range map[string]string{
		"\x1b[2m": "\x1b[90m", "\x1b[1;2m": "\x1b[1;90m", "\x1b[22m": "\x1b[22;39m", "\x1b[38;2;1;2;3m": "\x1b[38;2;1;2;3m", "\x1b[m": "\x1b[m",
	} {
		if got := replaceFaint(sequence); got != want {
			t.Errorf("%q became %q, want %q", sequence, got, want)
		}
	}
	c := castOf(Size{20, 1}, "a\x1b[", "2mb\x1b[0", "mc") // sequences that come in pieces
	frames, _, err := c.frames(time.Millisecond, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := row{{0, "a", style{fg: vt10x.DefaultFG, bg: vt10x.DefaultBG}}, {1, "b", style{fg: 8, bg: vt10x.DefaultBG}}, {2, "c", style{fg: vt10x.DefaultFG, bg: vt10x.DefaultBG}}}
	if diff := cmp.Diff(want, frames[len(frames)-1].rows[0], cmp.AllowUnexported(run{}, style{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColors(t *testing.T) {
	for c, want := range map[vt10x.Color]string{
		1: palette[1], 16: "#000000", 196: "#ff0000", 231: "#ffffff", 232: "#080808", 255: "#eeeeee", 0x123456: "#123456",
		vt10x.DefaultFG: foreground, vt10x.DefaultBG: background,
	} {
		if got := color(c); got != want {
			t.Errorf("color %d is %s, want %s", c, got, want)
		}
	}
}

func TestPicture(t *testing.T) {
	var b bytes.Buffer
	c := castOf(Size{20, 2}, "\x1b[1;32m<ok>\x1b[0m", " & \x1b[7mmore")
	if err := SVG(&b, c, `make "demo"`); err != nil {
		t.Fatal(err)
	}
	checkXML(t, b.Bytes())
	for _, want := range []string{
		`font-weight="bold">&lt;ok&gt;</text>`, `fill="` + palette[10] + `"`, "&amp;", "<rect x=", "@keyframes film{0%", "prefers-reduced-motion",
		"<title>make &#34;demo&#34;</title>", "steps(1,end) infinite",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the picture does not contain %s:\n%s", want, b.String())
		}
	}
	for _, unwanted := range []string{"<script", "<image", "http:", "https:", "url("} {
		if strings.Contains(strings.ReplaceAll(b.String(), "http://www.w3.org/2000/svg", ""), unwanted) {
			t.Errorf("the picture contains %s", unwanted)
		}
	}
}

func TestPictureStaysBelowItsLimit(t *testing.T) {
	c := Cast{Size: Size{80, 24}}
	for i := range 300 {
		c.Events = append(c.Events, Event{At: time.Duration(i) * 100 * time.Millisecond, Text: "\r\n" + strings.Repeat(string(rune('a'+i%26)), 40+i%30)})
	}
	for _, limit := range []int{10_000, 30_000} {
		var b bytes.Buffer
		if err := c.picture(&b, "", limit); err != nil || b.Len() > limit {
			t.Errorf("%d bytes, %v; want at most %d", b.Len(), err, limit)
		}
	}
	if err := c.picture(io.Discard, "", 10); err == nil {
		t.Error("no error for a limit that nothing can keep")
	}
}

// Whatever a program writes, the picture is XML, is the same every time, and nothing panics.
func TestAnyOutputCanBeDrawn(t *testing.T) {
	fragment := rapid.SampledFrom([]string{
		"\x1b[", "\x1b[31m", "\x1b[0m", "\x1b[2J", "\x1b[5;5H", "\x1b[999;999H", "\x1b[?1049h", "\x1b[?25l", "\x1b[L", "\x1b[99M", "\x1b[9999P", "\x1b[r", "\x1b[3;1r", "\x1b(0", "qx", "\x1bM", "\x1b]0;title\x07",
		"\x1b[38;5;300m", "\x1b[48;2;1;2;3m", "\n", "\r\n", "\t", "\b", "<&>", "名", "e\u0301", "\x00", "\uffff", "\x1b[-1A", "\x1b[@",
	})
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.OneOf(fragment, rapid.String()), 0, 20).Draw(t, "texts")
		c := castOf(Size{rapid.IntRange(1, 30).Draw(t, "columns"), rapid.IntRange(1, 6).Draw(t, "rows")}, texts...)
		var first, second bytes.Buffer
		errFirst, errSecond := SVG(&first, c, ""), SVG(&second, c, "")
		if (errFirst == nil) != (errSecond == nil) || first.String() != second.String() {
			t.Fatalf("the second picture differs from the first: %v, %v", errFirst, errSecond)
		}
		if errFirst == nil {
			checkXML(t, first.Bytes())
		}
	})
}

func checkXML(t interface {
	Helper()
	Fatalf(string, ...any)
}, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("not XML: %v\n%s", err, text)
		}
	}
}

func TestReadCastRefusesNonsense(t *testing.T) {
	for name, text := range map[string]string{
		"empty":        "",
		"no header":    "hello\n",
		"version 1":    `{"version":1,"width":80,"height":24}`,
		"no size":      `{"version":2}`,
		"huge":         `{"version":2,"width":80000,"height":24}`,
		"not an event": "{\"version\":2,\"width\":80,\"height\":24}\n{}\n",
		"too short":    "{\"version\":2,\"width\":80,\"height\":24}\n[1,\"o\"]\n",
		"negative":     "{\"version\":2,\"width\":80,\"height\":24}\n[-1,\"o\",\"x\"]\n",
	} {
		if c, err := ReadCast(strings.NewReader(text)); err == nil {
			t.Errorf("%s: read as %+v, want an error", name, c)
		}
	}
}
