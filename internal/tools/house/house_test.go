// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"

	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// The limits of the house. A type, a file or a function that outgrows one of them holds something
// that has no name yet: name that, then move it.
const (
	mostMethods   = 30
	mostFileLines = 500
	mostFuncLines = 60
)

// dataMark is the line of a file that is a table and not code. Such a file has no limit of length.
const dataMark = "\n// This file is data"

func TestHouse(t *testing.T) {
	inRoot(t)
	h := newHouse()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "golden" || d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return h.add(filepath.ToSlash(path), src)
	})
	must(t, err)
	for _, problem := range h.problems() {
		t.Error(problem)
	}
}

// house is what is measured of the files that people write.
type house struct {
	methods map[string]int // by directory, package and type
	found   []string
}

func newHouse() *house { return &house{methods: map[string]int{}} }

// add measures a file. Generated files are left out.
func (h *house) add(path string, src []byte) error {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(file) {
		return nil
	}
	lines := strings.Count(string(src), "\n")
	if lines > mostFileLines && !strings.Contains(string(src), dataMark) {
		h.found = append(h.found, fmt.Sprintf("%s: the file has %d lines, more than %d", path, lines, mostFileLines))
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		n := linesOf(fset, fn)
		if strings.HasSuffix(path, "_test.go") {
			n -= tableLines(fset, fn)
		}
		if n > mostFuncLines {
			h.found = append(h.found, fmt.Sprintf("%s: %s has %d lines, more than %d", fset.Position(fn.Pos()), fn.Name.Name, n, mostFuncLines))
		}
		if receiver := receiverOf(fn); receiver != "" {
			h.methods[filepath.ToSlash(filepath.Dir(path))+": "+file.Name.Name+"."+receiver]++
		}
	}
	return nil
}

func linesOf(fset *token.FileSet, n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

// tableLines returns how many lines of a test are the rows of its tables, which are data.
func tableLines(fset *token.FileSet, fn *ast.FuncDecl) int {
	lines := 0
	ast.Inspect(fn, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch literal.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			lines += linesOf(fset, literal) - 1
			return false
		}
		return true
	})
	return lines
}

func (h *house) problems() []string {
	for _, name := range slices.Sorted(maps.Keys(h.methods)) {
		if n := h.methods[name]; n > mostMethods {
			h.found = append(h.found, fmt.Sprintf("%s has %d methods, more than %d", name, n, mostMethods))
		}
	}
	return h.found
}

// receiverOf returns the name of the type of which fn is a method, empty if it is none.
func receiverOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(types.ExprString(fn.Recv.List[0].Type), "[")
	return strings.TrimPrefix(name, "*")
}

// Between two files of an engine or of the simulator calls go one way, or through an interface, so
// that a reader can follow them without coming back.
func TestCallsGoOneWay(t *testing.T) {
	rings.Test(t, "compiles what the packages import")
	inRoot(t)
	config := &packages.Config{Mode: packages.LoadSyntax, Env: append(os.Environ(), "GOWORK=off")}
	loaded, err := packages.Load(config, "./step/...", "./sim", "./internal/sim/actor", "./internal/sim/explore", "./internal/sim/fakes", "./internal/sim/fault", "./internal/sim/inject",
		"./internal/sim/needs", "./internal/sim/oracle", "./internal/sim/players", "./internal/sim/schedule", "./internal/sim/writes")
	must(t, err)
	for _, p := range loaded {
		for _, e := range p.Errors {
			t.Error(e)
		}
		if strings.Contains(p.PkgPath, "/mutants") {
			continue // wrong operators, and not a part of the simulator
		}
		for _, problem := range returningCalls(p.Fset, p.Syntax, p.TypesInfo) {
			t.Errorf("%s: %s", strings.TrimPrefix(p.PkgPath, module+"/"), problem)
		}
	}
}

// returningCalls names the pairs of files in which methods are called in both directions.
func returningCalls(fset *token.FileSet, files []*ast.File, info *types.Info) []string {
	calls := map[[2]string]string{} // an example for each pair of files, by caller and called
	for _, file := range files {
		from := filepath.Base(fset.Position(file.Pos()).Filename)
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			method, ok := info.Uses[selector.Sel].(*types.Func)
			if !ok || method.Signature().Recv() == nil || types.IsInterface(method.Signature().Recv().Type()) {
				return true
			}
			method = method.Origin()
			to := filepath.Base(fset.Position(method.Pos()).Filename)
			if slices.ContainsFunc(files, func(f *ast.File) bool { return f.FileStart <= method.Pos() && method.Pos() < f.FileEnd }) && to != from {
				calls[[2]string{from, to}] = selector.Sel.Name
			}
			return true
		})
	}
	var problems []string
	for pair, there := range calls {
		if back, ok := calls[[2]string{pair[1], pair[0]}]; ok && pair[0] < pair[1] {
			problems = append(problems, fmt.Sprintf("%s calls %s of %s, which calls %s of it: put an interface between their types, or one type below the other",
				pair[0], there, pair[1], back))
		}
	}
	slices.Sort(problems)
	return problems
}

// The tests above have to be able to fail, and to leave what is right alone.
func TestHouseTestCanFail(t *testing.T) {
	inRoot(t)
	long := "package p\n\nfunc f() {\n" + strings.Repeat("\tf()\n", mostFuncLines) + "}\n"
	table := "package p\n\nfunc f() {\n\t_ = []int{\n" + strings.Repeat("\t\t1,\n", mostFuncLines-1) + "\t}\n}\n"
	huge := "package p\n" + strings.Repeat("// More.\n", mostFileLines)
	var crowded strings.Builder
	crowded.WriteString("package p\n\ntype t[K any] struct{}\n")
	for i := range mostMethods + 1 {
		fmt.Fprintf(&crowded, "func (*t[K]) m%d() {}\n", i)
	}
	for name, tt := range map[string]struct{ src, want string }{
		"a table in a test":    {table, ""},
		"a table in code":      {table, "p.go:3:1: f has 63 lines, more than 60"},
		"a long function":      {long, "p.go:3:1: f has 62 lines, more than 60"},
		"a long file":          {huge, "p.go: the file has 501 lines, more than 500"},
		"data":                 {huge + strings.TrimPrefix(dataMark, "\n") + ".\n", ""},
		"a type of many parts": {crowded.String(), ".: p.t has 31 methods, more than 30"},
		"generated":            {"// Code generated by hand. DO NOT EDIT.\n\n" + long, ""},
		"short":                {"package p\n\nfunc f() {}\n", ""},
	} {
		h, path := newHouse(), "p.go"
		if name == "a table in a test" {
			path = "p_test.go"
		}
		must(t, h.add(path, []byte(tt.src)))
		if got := strings.Join(h.problems(), "\n"); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestCallsGoOneWayCanFail(t *testing.T) {
	inRoot(t)
	const a = "package p\ntype A struct{ b *B[int] }\nfunc (a A) Down() { a.b.Lower() }\nfunc (a A) Back() {}\n"
	for name, tt := range map[string]struct{ b, want string }{
		"down only":            {"package p\ntype B[T any] struct{}\nfunc (b *B[T]) Lower() {}\n", ""},
		"through an interface": {"package p\ntype Backer interface{ Back() }\ntype B[T any] struct{ a Backer }\nfunc (b *B[T]) Lower() { b.a.Back() }\n", ""},
		"both ways":            {"package p\ntype B[T any] struct{ a A }\nfunc (b *B[T]) Lower() { b.a.Back() }\n", "a.go calls Lower of b.go, which calls Back of it"},
		"both ways, as values": {"package p\ntype B[T any] struct{ a A }\nfunc (b *B[T]) Lower() { f := b.a.Back; f() }\n", "a.go calls Lower of b.go, which calls Back of it"},
	} {
		fset := token.NewFileSet()
		var files []*ast.File
		for path, src := range map[string]string{"a.go": a, "b.go": tt.b} {
			file, err := parser.ParseFile(fset, path, src, parser.SkipObjectResolution)
			must(t, err)
			files = append(files, file)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		if _, err := new(types.Config).Check("p", fset, files, info); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(returningCalls(fset, files, info), "\n")
		if !strings.HasPrefix(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// What is served beside the metrics is behind the guard of internal/show/localhost.
func TestServedBehindTheGuard(t *testing.T) {
	inRoot(t)
	for path, text := range filesBelow(t, ".go") {
		if !strings.HasSuffix(path, "_test.go") && path != "internal/show/localhost/localhost.go" && strings.Contains(text, ".AddMetricsServerExtraHandler(") {
			t.Errorf("%s adds a handler to a metrics server: let localhost.Serve do it, which checks for which name it is asked", path)
		}
	}
}

// The map names a file for each station of the ways through the house, and each package. So do the
// recipes for contributors, which also name tests.
func TestArchitectureIsTrue(t *testing.T) {
	inRoot(t)
	text, err := os.ReadFile("docs/architecture.md")
	must(t, err)
	recipes, err := os.ReadFile("CONTRIBUTING.md")
	must(t, err)
	var tests strings.Builder
	for _, text := range filesBelow(t, "_test.go") {
		tests.WriteString(text)
	}
	named := regexp.MustCompile("`(?:([a-z0-9_/-]+(?:/|\\.(?:go|txt|txtar|yaml)))|(Test[A-Za-z]+))`")
	for page, text := range map[string][]byte{"docs/architecture.md": text, "CONTRIBUTING.md": recipes} {
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(match[1]); match[1] != "" && err != nil {
				t.Errorf("%s names a file that is not there: %v", page, err)
			}
			if match[2] != "" && !strings.Contains(tests.String(), "func "+match[2]+"(t *testing.T)") {
				t.Errorf("%s names the test %s, which is not there", page, match[2])
			}
		}
	}
	for _, p := range ownPackages(t) {
		dir := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if !isOnMap(string(text), dir) {
			t.Errorf("docs/architecture.md has no line for package %q", dir)
		}
	}
}

// isOnMap reports whether the map names a package, or one above it of which it is a part.
func isOnMap(text, dir string) bool {
	for ; dir != "."; dir = filepath.ToSlash(filepath.Dir(dir)) {
		if strings.Contains(text, "`"+dir+"`") || strings.Contains(text, "`"+dir+"/...`") || strings.Contains(text, "`"+filepath.Base(dir)+"`") {
			return true
		}
	}
	return false
}

// oldWords are words that the glossary has better ones for, or that were renamed. They begin at
// the beginning of a word.
var oldWords = regexp.MustCompile(`^(` + strings.Join([]string{
	"(?i:somebody|nobody|anybody|whoever|told|tells|owed|goes on|looks? again)",
	"(?i:comes? to rest|at rest|to and fro|with an ear for|lets? go of|their kin|way out|clean-ups?)",
	"(?i:none of the object's business|is at it|goes back to)",
	"(?i:cancelled|summarised?|colour(ed|s)?|behaviour|honour(ed|s)?|normalise[ds]?)",
	`(LookAgainWithin|RestUntilInputsChange|NeverRest|ErrNotOurs|NeverAtRest|GoroutineLeft|StartForTest|ConditionManager|WithWay|Summarise)`,
	`failure\.(As|Judge|Verdict|OfClass|WayOut|Unavailable|NotFound)`, `Options\.(Live|Rest)`,
	`condition\.(Info|Warning|Error|Counts|Informs|NormalTrue)`, `journal\.(Do|Done|Behind|OwnChange)`,
	`sim\.(Lag|SameEnd|Pairs|Seed)`, `step\.(Poster|FinalizerPolicy)`, `Engine\.(Tell|Listen|Reader)`,
	`(haunt|startedBlind|parkedStory|errGoOn)`,
}, "|") + `)\b`)

// findOldWords calls found with the place of each old word. It looks only where a word begins: that
// is four times as fast as a search.
func findOldWords(text []byte, found func(begin, end int)) {
	for at := range text {
		if at > 0 && isWord(text[at-1]) || !isWord(text[at]) {
			continue
		}
		if m := oldWords.FindIndex(text[at:min(at+60, len(text))]); m != nil {
			found(at, at+m[1])
		}
	}
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
}

// wordy are the files in which the old words may stand.
var wordy = map[string]string{
	"internal/tools/house/house_test.go": "it lists them",
	"CHANGELOG.md":                       "it has a table of them",
	"docs/glossary.md":                   "it says what is not said",
}

func TestWords(t *testing.T) {
	rings.Test(t, "takes seconds")
	inRoot(t)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		path = filepath.ToSlash(path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || wordy[path] != "" || !slices.Contains([]string{".go", ".md", ".ctrlkit", ".txt", ".txtar", ".yaml"}, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		findOldWords(text, func(begin, end int) {
			t.Errorf("%s:%d: %q is not a word of docs/glossary.md", path, 1+bytes.Count(text[:begin], []byte("\n")), text[begin:end])
		})
		return nil
	})
	must(t, err)
}
