// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check_test

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/check"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/format"
)

const (
	manual = "../../../../docs/language.md"
	// manualFile is where the documents of the manual would be: their definitions are there.
	manualFile = "../../gen/golden/defined/example.ctrlkit"
	// codesMark is where the table of codes begins in the manual.
	codesMark = "<!-- codes:"
)

// TestManual compares the part of the manual that explains the codes with the table that the
// command explains them by.
func TestManual(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(text, []byte(codesMark))
	if at < 0 {
		t.Fatalf("%s has no line that begins with %s", manual, codesMark)
	}
	line := bytes.IndexByte(text[at:], '\n') + 1
	prose, got := text[:at+line], string(text[at+line:])
	want := manualCodes()
	if got == want {
		return
	}
	t.Error(cmp.Diff(want, got))
	if updating() {
		if err := os.WriteFile(manual, append(bytes.Clone(prose), want...), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func manualCodes() string {
	var b strings.Builder
	for _, e := range diag.Codes() {
		fmt.Fprintf(&b, "\n### %s\n\n%s: %s. %s\n\n", e.Code, strings.ToUpper(e.Severity.String()[:1])+e.Severity.String()[1:], e.Title, e.Text)
		if showable(e.Example) {
			fmt.Fprintf(&b, "```ctrlkit %s\n%s```\n", e.Code, e.Example)
		} else {
			fmt.Fprintf(&b, "```go-string %s\n%s\n```\n", e.Code, strconv.QuoteToASCII(e.Example))
		}
	}
	return b.String()
}

// showable reports whether a text survives being shown in a manual.
func showable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && !unicode.IsPrint(r)
	})
}

var fence = regexp.MustCompile("(?ms)^```(ctrlkit|go-string)( [^\n]*)?\n(.*?)^```$")

// TestManualExamples checks every piece of the language that the manual shows: the one for a code
// has that mistake and no other, every other one has none and is laid out as fmt would.
func TestManualExamples(t *testing.T) {
	text, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, m := range fence.FindAllSubmatch(text, -1) {
		info, src := strings.TrimSpace(string(m[2])), string(m[3])
		if string(m[1]) == "go-string" {
			if src, err = strconv.Unquote(strings.TrimSpace(src)); err != nil {
				t.Fatal(err)
			}
		}
		seen[info]++
		t.Run(fmt.Sprintf("%s %d", info, seen[info]), func(t *testing.T) {
			if info == "state" {
				src = inDecl(src)
			}
			in := check.Input{Dir: moduleDir, Sources: []check.Source{{File: manualFile, Text: []byte(src)}}}
			_, list := checkReal(t, in)
			switch {
			case strings.HasPrefix(info, "CK"):
				if len(list) != 1 || string(list[0].Code) != info {
					t.Errorf("want the mistake %s alone, got:\n%s", info, rendered(t, in, list))
				}
				return
			case list.HasErrors():
				t.Errorf("mistakes in a good example:\n%s", rendered(t, in, list))
			}
			formatted, _ := format.Source("example.ctrlkit", []byte(src))
			if diff := cmp.Diff(src, string(formatted)); diff != "" {
				t.Errorf("not formatted:\n%s", diff)
			}
		})
	}
	for _, e := range diag.Codes() {
		if seen[string(e.Code)] != 1 {
			t.Errorf("the manual has %d examples for %s, want 1", seen[string(e.Code)], e.Code)
		}
	}
	if seen[""] == 0 || seen["state"] < 5 {
		t.Errorf("found %d documents and %d states: is the pattern right?", seen[""], seen["state"])
	}
}

// inDecl puts states into a document.
func inDecl(states string) string {
	var b strings.Builder
	b.WriteString("alias CronJob controller-kit-demo/v1/CronJob\n\ndecl Example for CronJob {\n    state {\n")
	for line := range strings.Lines(states) {
		b.WriteString("        " + line)
	}
	b.WriteString("    }\n}\n")
	return "bind controller-kit-demo/v1 controller-kit-demo/api/v1\n\n" + b.String()
}
