// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ast_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/parser"
)

// everything has every construct of the language, and a comment wherever one may stand.
const everything = `// About the file.

// doc of bind
bind batch/v1 k8s.io/api/batch/v1 // trailing bind
// doc of alias
alias Job batch/v1/Job // trailing alias

// doc of decl
decl M for CronJob { // open decl
    // doc of section
    state { // open state block
        // a note

        // doc of state
        jobs []Job { // open state
            // doc of selector
            owned // trailing owned
            name = "a \"b\" \u00e9 ${ target.Spec.X }"
            namespace=*
            labels/app=web-${target.Name}-x
            // last in jobs
        } // close state
        none Pod {}
    } // close state block
    action {
        // doc of action
        Sync( // open action
            // doc of arg
            jobs, // trailing arg
            none
            // tail
        ) // trailing action
        Nothing()
    }
} // close decl
// end`

func parse(t *testing.T, src string) *ast.File {
	t.Helper()
	file, list := parser.Parse("a.ctrlkit", []byte(src))
	if len(list) > 0 {
		t.Fatalf("%v in\n%s", list, src)
	}
	return file
}

func kindOf(n ast.Node) string { return reflect.TypeOf(n).Elem().Name() }

func TestDocumentHasEveryConstruct(t *testing.T) {
	file := parse(t, everything)
	kinds := map[string]bool{}
	for n := range ast.All[ast.Node](file) {
		kinds[kindOf(n)] = true
	}
	for _, want := range []string{
		"File", "Bind", "Alias", "Decl", "Section", "Block", "State", "Selector", "Value", "Part", "Ref", "Action", "Arg",
		"Word", "Comment", "Note",
	} {
		if !kinds[want] {
			t.Errorf("no %s was visited", want)
		}
	}
	var comments []string
	for c := range ast.All[*ast.Comment](file) {
		comments = append(comments, c.Text)
	}
	var want []string
	for line := range strings.Lines(everything) {
		if _, text, ok := strings.Cut(line, "//"); ok {
			want = append(want, "//"+strings.TrimRight(text, "\n"))
		}
	}
	if diff := cmp.Diff(want, comments); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
}

// TestSpansNest checks the rules of [ast.Node.Span].
func TestSpansNest(t *testing.T) {
	file := parse(t, everything)
	var parents []ast.Node
	end := map[ast.Node]int{} // of the child that was visited last, by parent
	ast.Walk(file, func(n ast.Node) bool {
		if n == nil {
			parents = parents[:len(parents)-1]
			return true
		}
		span := n.Span()
		if span.Start >= span.End || !file.Span().Contains(span) {
			t.Errorf("%s spans %v in a file of %v", kindOf(n), span, file.Span())
		}
		if len(parents) > 0 {
			parent := parents[len(parents)-1]
			if _, isComment := n.(*ast.Comment); !isComment && !parent.Span().Contains(span) {
				t.Errorf("%s %v lies outside of its %s %v", kindOf(n), span, kindOf(parent), parent.Span())
			}
			if span.Start < end[parent] {
				t.Errorf("%s %v of a %s begins before its sibling ends at %d", kindOf(n), span, kindOf(parent), end[parent])
			}
			end[parent] = span.End
		}
		parents = append(parents, n)
		return true
	})
	if len(parents) > 0 {
		t.Errorf("Walk ended in %d nodes that it has not left", len(parents))
	}
}

// TestSpanText reads the text of each span: it is the node, no more and no less.
func TestSpanText(t *testing.T) {
	file := parse(t, everything)
	for n := range ast.All[ast.Node](file) {
		text := everything[n.Span().Start:n.Span().End]
		if _, isPart := n.(*ast.Part); !isPart && strings.TrimSpace(text) != text {
			t.Errorf("white space around %s %q", kindOf(n), text)
		}
		switch n := n.(type) {
		case *ast.Word:
			if text != n.Text {
				t.Errorf("word %q spans %q", n.Text, text)
			}
		case *ast.Comment:
			if text != n.Text {
				t.Errorf("comment %q spans %q", n.Text, text)
			}
		case *ast.Block:
			if text[0] != '{' || text[len(text)-1] != '}' {
				t.Errorf("block spans %q", text)
			}
		case *ast.Ref:
			if text != n.String() && text != "${ target.Spec.X }" {
				t.Errorf("reference %s spans %q", n, text)
			}
		case *ast.Bind:
			parsesBack(t, n, "%s", text)
		case *ast.Alias:
			parsesBack(t, n, "%s", text)
		case *ast.Decl:
			parsesBack(t, n, "%s", text)
		case *ast.Section:
			parsesBack(t, n, "decl A for B { %s }", text)
		case *ast.State:
			parsesBack(t, n, "decl A for B { state { %s } }", text)
		case *ast.Action:
			parsesBack(t, n, "decl A for B { action { %s } }", text)
		case *ast.Selector:
			parsesBack(t, n, "decl A for B { state { a B { %s } } }", text)
		case *ast.Value:
			parsesBack(t, n, "decl A for B { state { a B { name=%s } } }", text)
		}
	}
}

// parsesBack parses text within a document and compares the first node of its type with n.
func parsesBack[N ast.Node](t *testing.T, n N, document, text string) {
	t.Helper()
	for got := range ast.All[N](parse(t, fmt.Sprintf(document, text))) {
		diff := cmp.Diff(n, got,
			cmpopts.IgnoreTypes(ast.Range{}, ast.Lead{}), cmpopts.EquateEmpty(),
			// Comments around a node are outside of its span.
			cmp.FilterPath(isLastComment, cmp.Ignore()))
		if diff != "" {
			t.Errorf("%s %q parses as another one (-want +got):\n%s", kindOf(n), text, diff)
		}
		return
	}
	t.Errorf("no %s in %q", kindOf(n), text)
}

func isLastComment(p cmp.Path) bool {
	if len(p) < 2 {
		return false
	}
	last := p[len(p)-1].String()
	return last == ".Trailing" && len(p) == 3 || last == ".Close" && len(p) == 4
}

func TestWalkLeavesOutChildren(t *testing.T) {
	var visited []string
	ast.Walk(parse(t, everything), func(n ast.Node) bool {
		if n == nil {
			visited = append(visited, "end")
			return true
		}
		visited = append(visited, kindOf(n))
		_, isFile := n.(*ast.File)
		return isFile
	})
	want := []string{"File", "Note", "Bind", "Alias", "Decl", "Note", "end"}
	if !slices.Equal(visited, want) {
		t.Errorf("visited %v, want %v", visited, want)
	}
}

func TestAllStopsEarly(t *testing.T) {
	count := 0
	for range ast.All[*ast.Word](parse(t, everything)) {
		if count++; count == 3 {
			break
		}
	}
	if count != 3 {
		t.Errorf("%d words after a break at the third", count)
	}
}

func TestPosition(t *testing.T) {
	file := parse(t, everything)
	for decl := range ast.All[*ast.Decl](file) {
		start, end := file.Position(decl)
		if start.String() != "a.ctrlkit:9:1" || end.String() != "a.ctrlkit:35:2" {
			t.Errorf("the declaration stands from %v to %v", start, end)
		}
	}
}
