// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package printable_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
)

func TestTexts(t *testing.T) {
	for _, test := range []struct{ text, line, markdown string }{
		{"", "", ""},
		{"ready: ✓ é 世 🔑", "ready: ✓ é 世 🔑", "ready: ✓ é 世 🔑"},
		{"a\nb\r\n\tc", "a b c", "a b c"},
		{"\x1b[31mred\x07\x00\x7f", `\x1b[31mred\x07\x00\x7f`, `\\x1b\[31mred\\x07\\x00\\x7f`},
		{"\u009b31m\u0085", `\u009b31m\u0085`, `\\u009b31m\\u0085`},
		{"left\u202eright\u2066\u200f\u200b\ufeff", `left\u202eright\u2066\u200f\u200b\ufeff`, `left\\u202eright\\u2066\\u200f\\u200b\\ufeff`},
		{"\u2028\u2029\U000e0001", `\u2028\u2029\U000e0001`, `\\u2028\\u2029\\U000e0001`},
		{"\xffno UTF-8\xc3", `\xffno UTF-8\xc3`, `\\xffno UTF-8\\xc3`},
		{"<b>[x](http://y) ![z](z) `c` \\", "<b>[x](http://y) ![z](z) `c` \\", "\\<b>\\[x](http://y) !\\[z](z) \\`c\\` \\\\"},
	} {
		if got := printable.Line(test.text); got != test.line {
			t.Errorf("the line of %q is %q, want %q", test.text, got, test.line)
		}
		if got := printable.Markdown(test.text); got != test.markdown {
			t.Errorf("the Markdown of %q is %q, want %q", test.text, got, test.markdown)
		}
	}
	if got := printable.Text("a\n\x1b\tb"); got != "a\n\\x1b\\x09b" {
		t.Errorf("a text is %q", got)
	}
	if got := printable.Code("```\nx"); strings.Contains(got, "```") || strings.Contains(got, "\n") {
		t.Errorf("the code %q ends its block", got)
	}
}

// A text is cut once, between characters, and says so.
func TestCut(t *testing.T) {
	long := strings.Repeat("é", 100)
	cut := printable.Cut(long, 20)
	if want := strings.Repeat("é", 20) + "… (80" + printable.MoreCharacters; cut != want {
		t.Errorf("cut to %q, want %q", cut, want)
	}
	for _, text := range []string{cut, strings.Repeat("é", 60), "", "short"} {
		if got := printable.Cut(text, 20); got != text {
			t.Errorf("%q is cut to %q", text, got)
		}
	}
}

// Nothing that acts passes a writer, whatever is written in one piece or in pieces. A command that
// draws has its colors, and clears its lines.
func TestWriter(t *testing.T) {
	const text = "\x1b[31mred\x1b[0m\t\r\x1b[K\x1b]0;title\a é\u202e🔑\xff\n"
	const escaped = `\u001b[31mred\u001b[0m` + "\t" + `\u000d\u001b[K\u001b]0;title\u0007 é\u202e🔑\ufffd` + "\n"
	for pieces := 1; pieces <= len(text); pieces++ {
		var b strings.Builder
		w := printable.NewWriter(&b)
		for i := 0; i < len(text); i += pieces {
			piece := text[i:min(i+pieces, len(text))]
			if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
				t.Fatalf("%d bytes of %q are written, %v", n, piece, err)
			}
		}
		if b.String() != escaped {
			t.Errorf("in pieces of %d: %q, want %q", pieces, b.String(), escaped)
		}
		if f, draws := w.Draws(); f != nil || draws || w.Unchanged() != &b {
			t.Error("a builder is a terminal")
		}
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // of a test
	w := printable.NewWriter(file)
	if f, draws := w.Draws(); f != file || !draws {
		t.Error("a file is none")
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	const drawn = "\x1b[31mred\x1b[0m\t\r\x1b[K" + `\u001b]0;title\u0007 é\u202e🔑\ufffd` + "\n"
	if got, err := os.ReadFile(file.Name()); err != nil || string(got) != drawn {
		t.Errorf("%q is drawn, want %q, %v", got, drawn, err)
	}
}

// Nothing that acts is left in any text, escaping it again changes nothing, and JSON stays what it
// was.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{
		"", "a\nb\tc\rd", "\x1b]8;;http://x\a", "\u202e\u2066", "\xff\xc3", "\U000e0001\U0001f511", "\u2028", "`x`[y](z)<b>```\\", "`````", "\\u202e", "a\ufffdb", "\ufffe\x7f\u009b",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, escape := range map[string]func(string) string{
			"Line": printable.Line, "Text": printable.Text, "Code": printable.Code, "JSON": func(text string) string { return strings.ReplaceAll(printable.JSON(text), "\t", "") },
			"Markdown": printable.Markdown, "Cut": func(text string) string { return printable.Cut(printable.Line(text), 10) },
		} {
			got := escape(text)
			if !printable.Is(got) || strings.ContainsFunc(got, func(r rune) bool { return r != '\n' && printable.Acts(r) }) {
				t.Errorf("%s of %q is %q", name, text, got)
			}
			if again := escape(got); name != "Markdown" && again != got {
				t.Errorf("%s of %q is %q, and of that %q", name, text, got, again)
			}
			if name != "Text" && name != "JSON" && strings.Contains(got, "\n") {
				t.Errorf("%s of %q has lines: %q", name, text, got)
			}
		}
		if printable.Is(text) && (printable.Text(text) != text || printable.JSON(text) != text) {
			t.Errorf("%q needs no escapes", text)
		}
		checkJSON(t, text)
	})
}

// checkJSON checks that a text in JSON is the same one after what acts was escaped.
func checkJSON(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		return // no text of JSON
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "\t")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{text: []string{text}}); err != nil {
		t.Fatal(err)
	}
	var got map[string][]string
	if err := json.Unmarshal([]byte(printable.JSON(b.String())), &got); err != nil {
		t.Fatalf("JSON with %q: %v", text, err)
	}
	if len(got[text]) != 1 || got[text][0] != text {
		t.Errorf("JSON with %q becomes %q", text, got)
	}
}
