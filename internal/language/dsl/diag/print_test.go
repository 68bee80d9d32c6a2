// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diag_test

import (
	"bytes"
	"encoding/json"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
)

// at makes a diagnostic about the n-th line of a source, from one byte to another, both counted
// from 0.
func at(src string, line, from, to int, d diag.Diagnostic) diag.Diagnostic {
	offset := 0
	for i, text := range strings.SplitAfter(src, "\n") {
		if i == line-1 {
			break
		}
		offset += len(text)
	}
	d.Start = token.Position{Filename: "a.ctrlkit", Line: line, Column: from + 1, Offset: offset + from}
	d.End = token.Position{Filename: "a.ctrlkit", Line: line, Column: to + 1, Offset: offset + to}
	return d
}

func TestPrint(t *testing.T) {
	for _, test := range []struct {
		name, line string
		piece      string
		hint       string
		want       string
	}{
		{"ASCII", "    Sync(job)", "job", `did you mean "jobs"?`, "    1 |     Sync(job)\n      |          ^^^ did you mean \"jobs\"?\n"},
		{"no hint", "Sync(job)", "job", "", "    1 | Sync(job)\n      |      ^^^\n"},
		{"tab before", "\tSync(job)", "job", "", "    1 |     Sync(job)\n      |          ^^^\n"},
		{"tab in the middle", "ab\tjob", "job", "", "    1 | ab  job\n      |     ^^^\n"},
		{"tab inside", "a\tb", "a\tb", "", "    1 | a   b\n      | ^^^^^\n"},
		{"accents", "é(ü)", "ü", "", "    1 | é(ü)\n      |   ^\n"},
		{"combining marks", "e\u0301(u\u0308)", "u\u0308", "", "    1 | e\u0301(u\u0308)\n      |   ^\n"},
		{"wide", "日本(語)", "語", "", "    1 | 日本(語)\n      |      ^^\n"},
		{"broken UTF-8", "a\xff(b)", "b", "", "    1 | a\uFFFD(b)\n      |    ^\n"},
		{"escape sequence", "a\x1b[31mb", "b", "", "    1 | a\uFFFD[31mb\n      |       ^\n"},
		{"direction of text", "a\u202eb", "b", "", "    1 | a\uFFFDb\n      |   ^\n"},
		{"nothing", "abc", "", "", "    1 | abc\n      | ^\n"},
		{"carriage return", "abc\r", "c", "", "    1 | abc\n      |   ^\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			from := strings.Index(test.line, test.piece)
			d := at(test.line, 1, from, from+len(test.piece), diag.Diagnostic{Code: diag.UnknownState, Message: "m", Hint: test.hint})
			var out bytes.Buffer
			if err := (diag.Printer{Sources: map[string][]byte{"a.ctrlkit": []byte(test.line)}}).Print(&out, diag.List{d}); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(out.String(), "\n")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrintRelatedAndUnknownSource(t *testing.T) {
	src := "one\ntwo\nthree\n"
	d := at(src, 3, 0, 5, diag.Diagnostic{Code: diag.UnusedBind, Message: "not used", Hint: "hint"})
	r := at(src, 1, 0, 3, diag.Diagnostic{})
	d.Related = []diag.Related{{Start: r.Start, End: r.End, Message: "see here"}}
	for _, test := range []struct {
		name    string
		printer diag.Printer
		want    string
	}{
		{"plain", diag.Printer{Sources: map[string][]byte{"a.ctrlkit": []byte(src)}}, `a.ctrlkit:3:1: warning: not used [CK0601]
    3 | three
      | ^^^^^ hint
   a.ctrlkit:1:1: see here
    1 | one
      | ^^^
`},
		{"unknown source", diag.Printer{}, `a.ctrlkit:3:1: warning: not used [CK0601]
        hint
   a.ctrlkit:1:1: see here
`},
		{"color", diag.Printer{Sources: map[string][]byte{"a.ctrlkit": []byte(src)}, Style: diag.Color},
			"\x1b[1ma.ctrlkit:3:1\x1b[0m: \x1b[33mwarning: \x1b[0mnot used [CK0601]\n    3 | three\n      | \x1b[33m^^^^^\x1b[0m hint\n" +
				"   \x1b[1ma.ctrlkit:1:1\x1b[0m: see here\n    1 | one\n      | \x1b[34m^^^\x1b[0m\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := test.printer.Print(&out, diag.List{d}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrintJSON(t *testing.T) {
	src := "one\ntwo\n"
	d := at(src, 2, 0, 3, diag.Diagnostic{Code: diag.UnusedBind, Message: "a < b", Hint: "hint"})
	d.Related = []diag.Related{{Start: d.Start, End: d.End, Message: "see here"}}
	var out bytes.Buffer
	if err := diag.PrintJSON(&out, diag.List{d}); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	place := func(m map[string]any) map[string]any {
		m["file"] = "a.ctrlkit"
		m["start"] = map[string]any{"line": 2.0, "column": 1.0, "offset": 4.0}
		m["end"] = map[string]any{"line": 2.0, "column": 4.0, "offset": 7.0}
		return m
	}
	want := []map[string]any{place(map[string]any{
		"code": "CK0601", "severity": "warning", "message": "a < b", "hint": "hint",
		"related": []any{place(map[string]any{"message": "see here"})},
	})}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := diag.PrintJSON(&out, nil); err != nil || out.String() != "[]\n" {
		t.Errorf("no diagnostics: %q, %v", out.String(), err)
	}
}

func TestSort(t *testing.T) {
	src := "one\ntwo\n"
	a := at(src, 1, 0, 3, diag.Diagnostic{Code: diag.BadName, Message: "a"})
	b := at(src, 2, 0, 3, diag.Diagnostic{Code: diag.BadName, Message: "b"})
	c := at(src, 2, 0, 3, diag.Diagnostic{Code: diag.BadName, Message: "c"})
	got := diag.List{c, b, a, b, a}.Sort()
	if diff := cmp.Diff(diag.List{a, b, c}, got); diff != "" {
		t.Error(diff)
	}
}

// TestCodes checks that the table of codes is complete and in order.
func TestCodes(t *testing.T) {
	last := diag.Code("")
	for _, e := range diag.Codes() {
		if e.Code <= last {
			t.Errorf("%s comes after %s", e.Code, last)
		}
		last = e.Code
		if e.Title == "" || e.Text == "" || e.Example == "" || e.Severity == 0 {
			t.Errorf("%s lacks something: %+v", e.Code, e)
		}
		if (e.Severity == diag.Warning) != strings.HasPrefix(string(e.Code), "CK06") && e.Code != diag.ByteOrderMark && e.Code != diag.CarriageReturn {
			t.Errorf("%s is of severity %s", e.Code, e.Severity)
		}
	}
	if diag.Code("CK9999").Severity() != diag.Error {
		t.Error("an unknown code must count as an error")
	}
}

// printed is what a Printer writes about a source.
func printed(t *testing.T, src string, list ...diag.Diagnostic) string {
	t.Helper()
	var out bytes.Buffer
	if err := (diag.Printer{Sources: map[string][]byte{"a.ctrlkit": []byte(src)}}).Print(&out, list); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestPrintCutsLongLines has mistakes at the beginning, in the middle and at the end of a line that
// is too long to be shown.
func TestPrintCutsLongLines(t *testing.T) {
	const size = 1 << 20
	line := strings.Repeat("(", size)
	for _, test := range []struct {
		name          string
		from, to      int
		before, after bool // what is cut off
		gap, marks    int
	}{
		{"beginning", 0, 3, false, true, 0, 3},
		{"middle", size / 2, size/2 + 3, true, true, 61, 3},
		{"end", size - 3, size, true, false, 61, 3},
		{"the whole line", 0, size, false, true, 0, 160},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := printed(t, line, at(line, 1, test.from, test.to, diag.Diagnostic{Code: diag.UnknownState, Message: "m", Hint: "hint"}))
			lines := strings.Split(got, "\n")
			if len(got) > 1000 || len(lines) != 4 {
				t.Fatalf("%d bytes in %d lines", len(got), len(lines))
			}
			shown := strings.TrimPrefix(lines[1], "    1 | ")
			if strings.HasPrefix(shown, "…") != test.before || strings.HasSuffix(shown, "…") != test.after {
				t.Errorf("cut wrongly: %s", shown)
			}
			want := "      | " + strings.Repeat(" ", test.gap) + strings.Repeat("^", test.marks) + " hint"
			if diff := cmp.Diff(want, lines[2]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestPrintCutsBetweenCharacters has a long line of characters of several bytes.
func TestPrintCutsBetweenCharacters(t *testing.T) {
	for shift := range 3 {
		line := strings.Repeat("x", shift) + strings.Repeat("語", 1000)
		got := printed(t, line, at(line, 1, shift+1500, shift+1503, diag.Diagnostic{Code: diag.UnknownState, Message: "m"}))
		if strings.Contains(got, "\uFFFD") {
			t.Errorf("a character was cut:\n%s", got)
		}
	}
}

func TestPrintStopsAndCounts(t *testing.T) {
	src := strings.Repeat("Sync(job)\n", 20_000)
	var list diag.List
	for i := range 20_000 {
		code := diag.UnknownState
		if i%4 == 3 {
			code = diag.UnusedState
		}
		list = append(list, diag.Diagnostic{Code: code, Message: "m", Start: token.Position{Filename: "a.ctrlkit", Line: i + 1, Column: 1}})
	}
	got := printed(t, src, list...)
	if n := strings.Count(got, "a.ctrlkit:"); n != 100 {
		t.Errorf("%d diagnostics are shown, want 100", n)
	}
	if want := "and 14925 more errors and 4975 more warnings, which are not shown\n"; !strings.HasSuffix(got, want) {
		t.Errorf("the output ends with %q, want %q", got[len(got)-80:], want)
	}
	if got := printed(t, src, list[:100]...); strings.Contains(got, "not shown") || strings.Count(got, "a.ctrlkit:") != 100 {
		t.Error("a list of 100 is cut")
	}
	if got := printed(t, src, list[:101]...); !strings.HasSuffix(got, "and 1 more error, which is not shown\n") {
		t.Errorf("the output ends with %q", got[len(got)-80:])
	}
}

func TestLongMessagesAreCut(t *testing.T) {
	word := strings.Repeat("語", 1<<20)
	d := diag.Diagnostic{Code: diag.UnknownKind, Message: "unknown kind " + word + " in state", Hint: "write " + word}
	got := printed(t, "", d)
	if len(got) > 5000 || !strings.Contains(got, "unknown kind 語") || !strings.Contains(got, "語 in state [CK0201]") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
	var out bytes.Buffer
	if err := diag.PrintJSON(&out, diag.List{d}); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out.Bytes()) || out.Len() > 5000 {
		t.Errorf("%d bytes of JSON", out.Len())
	}
}
