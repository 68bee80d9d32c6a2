// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package lsp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/checktest"
)

// large is a document with states of every form.
func large(states int) string {
	var b, actions strings.Builder
	b.WriteString("// Large has many states.\ndecl Large for Deployment {\n    state {\n")
	for i := range states {
		switch i % 4 {
		case 0:
			fmt.Fprintf(&b, "        pods%d []Pod {\n            labels/app=${target.Name}-%d\n            fields/.status.phase=Running\n            owned\n        }\n", i, i)
		case 1:
			fmt.Fprintf(&b, "        settings%d ConfigMap {\n            name=${target.Name}-%d\n        }\n", i, i)
		case 2:
			fmt.Fprintf(&b, "        jobs%d []batch/v1/Job {\n            labels/tier in (front, ${target.Name})\n        }\n", i)
		case 3:
			fmt.Fprintf(&b, "        more%d []ConfigMap {\n            labels/of=${settings%d.Name}\n            namespace=*\n        }\n", i, i-2)
		}
		name := []string{"pods", "settings", "jobs", "more"}[i%4]
		fmt.Fprintf(&actions, "        Look%d(%s%d)\n", i, name, i)
	}
	b.WriteString("    }\n\n    action {\n" + actions.String() + "    }\n}\n")
	return b.String()
}

// A document of 100 lines is typed one character after the other. Nothing is left at the end, and on
// the way everything can be asked at the cursor.
func TestTyping(t *testing.T) {
	text := large(16)
	for strings.Count(text, "\n") < 100 {
		text += "// A line.\n"
	}
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	e.open("large.ctrlkit", "")
	version, typed := 1, ""
	for _, r := range text {
		version++
		at := endOf(typed)
		e.change("large.ctrlkit", version, object{"range": span{at, at}, "text": string(r)})
		typed += string(r)
		if version%7 == 0 {
			for _, method := range []string{"completion", "hover", "documentSymbol", "definition", "prepareRename"} {
				e.call("textDocument/"+method, e.at("large.ctrlkit", endOf(typed)), nil)
			}
		}
	}
	e.codes("large.ctrlkit", version)
}

// How long answers take with a document of 300 states: -v prints it.
func TestLatency(t *testing.T) {
	text := large(300)
	e := newEditor(t, checktest.Loader{}, object{}, nil)
	e.open("large.ctrlkit", text)
	e.codes("large.ctrlkit", 1)
	lines := strings.Split(text, "\n")
	took := map[string][]time.Duration{}
	version := 1
	measure := func(name string, do func()) {
		start := time.Now()
		do()
		took[name] = append(took[name], time.Since(start))
	}
	for i := range 60 {
		n := (i*37)%(len(lines)-1) + 1
		at := place{n, len(lines[n])}
		measure("change until answered", func() {
			version++
			e.change("large.ctrlkit", version, object{"range": span{at, at}, "text": " "})
			e.call("textDocument/prepareRename", e.at("large.ctrlkit", at), nil)
		})
		for _, method := range []string{"completion", "hover", "definition", "references", "documentSymbol", "formatting"} {
			params := e.at("large.ctrlkit", place{n, len(lines[n]) / 2})
			if method == "references" {
				params["context"] = object{"includeDeclaration": true}
			}
			measure(method, func() { e.call("textDocument/"+method, params, nil) })
		}
	}
	for name, all := range took {
		slices.Sort(all)
		t.Logf("%-22s p50 %6.2f ms, p95 %6.2f ms, most %6.2f ms", name, milliseconds(all[len(all)/2]), milliseconds(all[len(all)*95/100]), milliseconds(all[len(all)-1]))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Whatever is opened, edited and asked, the server answers, and has the text that the editor has:
// formatting it gives what formatting gives elsewhere.
func FuzzEdits(f *testing.F) {
	f.Add(shop, uint16(3), uint16(7), "x", uint16(0), uint16(60000), "}")
	f.Add(shop, uint16(100), uint16(100), "${target.", uint16(40), uint16(41), "\n")
	f.Add("decl 𝄞 for é {\r\n state {", uint16(2), uint16(9), "\xff", uint16(1), uint16(0), "(")
	f.Add(large(3), uint16(9), uint16(300), "", uint16(9), uint16(9), shop)
	f.Fuzz(func(t *testing.T, text string, start, end uint16, with string, start2, end2 uint16, with2 string) {
		if len(text)+len(with)+len(with2) > 4000 {
			t.Skip()
		}
		text, with, with2 = strings.ToValidUTF8(text, "?"), strings.ToValidUTF8(with, "?"), strings.ToValidUTF8(with2, "?")
		e := newEditor(t, checktest.Loader{}, object{}, nil)
		e.open("a.ctrlkit", strings.ReplaceAll(text, cursor, ""))
		version := 1
		for _, c := range []struct {
			start, end uint16
			with       string
		}{{start, end, with}, {start2, end2, with2}} {
			version++
			e.change("a.ctrlkit", version, object{"range": span{placeOf(c.start), placeOf(c.end)}, "text": c.with})
			at := placeOf(c.start)
			for _, method := range []string{"completion", "hover", "definition", "documentSymbol", "prepareRename"} {
				e.call("textDocument/"+method, e.at("a.ctrlkit", at), nil)
			}
			e.call("textDocument/codeAction", object{"textDocument": object{"uri": e.uri("a.ctrlkit")}, "range": span{at, at}, "context": object{}}, nil)
			_ = e.try("textDocument/formatting", e.at("a.ctrlkit", at), nil)
		}
		// A text that is right has nothing wrong, whatever was there before.
		e.replace("a.ctrlkit", version+1, shop)
		e.codes("a.ctrlkit", version+1)
	})
}

// placeOf makes a place of a number: a line and a character.
func placeOf(n uint16) place { return place{int(n) / 64, int(n) % 64} }
