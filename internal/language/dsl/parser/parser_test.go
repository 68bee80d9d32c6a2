// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package parser_test

import (
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// outline lists what a tree holds, one node per line.
func outline(file *ast.File) string {
	var o outliner
	o.items("", file.Items)
	return o.String()
}

type outliner struct{ strings.Builder }

func (o *outliner) line(indent, text string, comments ...*ast.Comment) {
	o.WriteString(indent + text)
	for _, c := range comments {
		if c != nil {
			o.WriteString(" " + c.Text)
		}
	}
	o.WriteString("\n")
}

func (o *outliner) items(indent string, list []ast.Item) {
	for _, n := range list {
		if n.Above().Blank {
			o.line(indent, "-")
		}
		for _, c := range n.Above().Doc {
			o.line(indent, "doc "+c.Text)
		}
		o.item(indent, n)
	}
}

func (o *outliner) item(indent string, n ast.Item) {
	switch n := n.(type) {
	case *ast.Note:
		o.line(indent, "note")
	case *ast.Bind:
		o.line(indent, "bind "+n.GroupVersion.Text+" "+n.Package.Text, n.Trailing)
	case *ast.Alias:
		o.line(indent, "alias "+n.Name.Text+" "+n.Kind.Text, n.Trailing)
	case *ast.Decl:
		o.block(indent, "decl "+n.Name.Text+" "+n.Kind.Text, &n.Body)
	case *ast.Section:
		o.block(indent, n.Keyword.Text, &n.Body)
	case *ast.State:
		list := ""
		if n.List {
			list = "[]"
		}
		o.block(indent, "state "+n.Name.Text+" "+list+n.Kind.Text, &n.Body)
	case *ast.Selector:
		o.selector(indent, n)
	case *ast.Action:
		o.action(indent, n)
	}
}

func (o *outliner) block(indent, head string, b *ast.Block) {
	o.line(indent, head, b.Open, b.Close)
	o.items(indent+"  ", b.Items)
}

func (o *outliner) selector(indent string, n *ast.Selector) {
	text := n.Key.Text
	if n.HasValue {
		text += " ="
	}
	for _, p := range n.Value.Parts {
		if p.Ref != nil {
			text += " " + p.Ref.String()
		} else {
			text += " <" + p.Text + ">"
		}
	}
	o.line(indent, text, n.Trailing)
}

func (o *outliner) action(indent string, n *ast.Action) {
	o.line(indent, "action "+n.Name.Text, n.Open, n.Trailing)
	for _, a := range n.Args {
		o.items(indent+"  ", []ast.Item{&ast.Note{Lead: a.Lead}})
		o.line(indent+"  ", "arg "+a.Name.Text, a.Trailing)
	}
	for _, c := range n.Tail {
		o.line(indent+"  ", "tail "+c.Text)
	}
}

const commented = `
// About the file.

// doc of bind
bind batch/v1 k8s.io/api/batch/v1 // trailing bind


decl M for CronJob { // open decl

    state { // open state
        // first

        // doc of jobs
        jobs []Job { // open jobs
            owned // trailing owned
            name = ${ target.Name }-x
            labels/a="a \"b\" \$ é ${target.Spec.X}" // trailing label
            // last in jobs
        } // close jobs
    } // close state
    action {
        Sync( // open sync
            // doc of jobs
            jobs, // trailing jobs
            pods // trailing pods
            // tail
        ) // trailing sync
    }
}
// end`

const commentedOutline = `doc // About the file.
note
-
doc // doc of bind
bind batch/v1 k8s.io/api/batch/v1 // trailing bind
-
decl M CronJob // open decl
  state // open state // close state
    doc // first
    note
    -
    doc // doc of jobs
    state jobs []Job // open jobs // close jobs
      owned // trailing owned
      name = ${target.Name} <-x>
      labels/a = <a "b" $ é > ${target.Spec.X} // trailing label
      doc // last in jobs
      note
  action
    action Sync // open sync // trailing sync
      doc // doc of jobs
      note
      arg jobs // trailing jobs
      note
      arg pods // trailing pods
      tail // tail
doc // end
note
`

// TestTree shows where every comment and value ends up.
func TestTree(t *testing.T) {
	file, list := parser.Parse("a.ctrlkit", []byte(commented))
	if len(list) > 0 {
		t.Fatal(list)
	}
	if diff := cmp.Diff(commentedOutline, outline(file)); diff != "" {
		t.Error(diff)
	}
}

// TestNothingElseIsLost takes one line or brace out of a document, and checks that the rest is
// still in the tree.
func TestNothingElseIsLost(t *testing.T) {
	const whole = `bind batch/v1 k8s.io/api/batch/v1
alias Job batch/v1/Job
decl First for Job {
    state {
        jobs []Job {
            owned
        }
        pods []Pod {
            owned
        }
    }
    action {
        One(jobs)
        Two(pods)
    }
}
decl Second for Job {
    action {
        Three()
    }
}
`
	names := []string{"jobs []Job", "pods []Pod", "One", "Two", "Three", "decl First", "decl Second", "alias Job", "bind batch/v1"}
	for _, test := range []struct{ name, old, new string }{
		{"block of jobs", "        }\n        pods", "        pods"},
		{"block of pods", "        }\n    }\n    action {\n        One", "    }\n    action {\n        One"},
		{"state block", "    }\n    action {\n        One", "    action {\n        One"},
		{"action block", "    }\n}\ndecl", "}\ndecl"},
		{"decl", "}\ndecl", "decl"},
		{"end", "    }\n}\n", ""},
		{"opening brace", "jobs []Job {", "jobs []Job"},
		{"opening brace of state", "state {", "state"},
		{"parenthesis", "One(jobs)", "One(jobs"},
		{"stray brace", "        }\n        pods", "        }\n        }\n        pods"},
		{"garbage line", "            owned\n        }\n        pods", "            ={(\n        }\n        pods"},
		{"garbage at top", "alias", ")))\nalias"},
		{"quote", "            owned\n        }\n        pods", "            name=\"\n        }\n        pods"},
		{"reference", "            owned\n        }\n        pods", "            name=${target.Name\n        }\n        pods"},
	} {
		t.Run(test.name, func(t *testing.T) {
			at := strings.LastIndex(whole, test.old)
			if test.name != "end" {
				at = strings.Index(whole, test.old)
			}
			src := whole[:at] + test.new + whole[at+len(test.old):]
			file, list := parser.Parse("a.ctrlkit", []byte(src))
			if !list.HasErrors() {
				t.Error("no mistake was found")
			}
			got := outline(file)
			for _, name := range names {
				if !strings.Contains(got, name) {
					t.Errorf("%s is lost in\n%s\nof\n%s", name, got, src)
				}
			}
		})
	}
}

// hostile are pieces of text that, when repeated, tempt a parser to read the same text again and
// again.
var hostile = []string{
	"${", "name=${", `name="${`, `"" `, "/*", "/*\n", "a(\nb\n", "a(b,\n", "state {\n", "jobs []Job\n\n", "jobs []Job {", "{", "}",
	"}\n", "decl A for B\n", "decl A for B {\n", "[", "name=a[", "// c\n", "\n", "a ", "$", "\\", "é", "\xff", "\x00", "name=$(", "x//", "https://", "name=https://", "\\u", "name=\"\\\\",
}

func repeated(piece string, n int) []byte {
	return []byte("decl A for B {\nstate {\njobs []Job {\n" + strings.Repeat(piece, n))
}

// TestLinearMemory checks that the memory for a text does not grow with the square of its length:
// 16 times the text takes about 16 times the memory. BenchmarkHostile shows the same of the time.
func TestLinearMemory(t *testing.T) {
	for _, piece := range hostile {
		short := allocated(func() { parser.Parse("a", repeated(piece, 250)) })
		long := allocated(func() { parser.Parse("a", repeated(piece, 4000)) })
		if long > 60*max(short, 16<<10) { // 256 times if it grew with the square
			t.Errorf("%q: 250 times took %d bytes, 4000 times %d", piece, short, long)
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// BenchmarkHostile reports the time for a piece of hostile text, which should not depend on how
// often the piece is repeated.
func BenchmarkHostile(b *testing.B) {
	for _, n := range []int{500, 16000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				for _, piece := range hostile {
					parser.Parse("a", repeated(piece, n))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*len(hostile)), "ns/piece")
		})
	}
}

// FuzzParse looks for panics and for diagnostics that point outside of the text.
func FuzzParse(f *testing.F) {
	for _, src := range documents(f) {
		f.Add([]byte(src))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		file, list := parser.Parse("a.ctrlkit", src)
		if file == nil {
			t.Fatal("no tree")
		}
		for i, d := range list {
			if _, ok := diag.Explain(d.Code); !ok {
				t.Errorf("unknown code %s", d.Code)
			}
			if d.Start.Offset < 0 || d.End.Offset < d.Start.Offset || d.End.Offset > len(src) || d.Message == "" {
				t.Errorf("diagnostic %v spans %d to %d of %d", d, d.Start.Offset, d.End.Offset, len(src))
			}
			if i > 0 && list[i-1].Start.Offset > d.Start.Offset {
				t.Errorf("%v comes after %v", d, list[i-1])
			}
		}
		checkSpans(t, file, src)
		if err := (diag.Printer{Sources: map[string][]byte{"a.ctrlkit": src}}).Print(io.Discard, list); err != nil {
			t.Error(err)
		}
	})
}

// checkSpans looks for nodes that lie outside of the node above them. Documents with mistakes have
// such spans as well.
func checkSpans(t *testing.T, file *ast.File, src []byte) {
	t.Helper()
	var parents []ast.Node
	ast.Walk(file, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		_, isComment := n.(*ast.Comment)
		if len(parents) > 0 && !isComment && !parents[len(parents)-1].Span().Contains(n.Span()) {
			parent := parents[len(parents)-1]
			t.Errorf("%T %v lies outside of its %T %v in\n%s", n, n.Span(), parent, parent.Span(), src)
		}
		if !file.Span().Contains(n.Span()) || n.Span().End < n.Span().Start {
			t.Errorf("%T spans %v of %d bytes", n, n.Span(), len(src))
		}
		parents = append(parents, n)
		return true
	})
}
