// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// insertAt inserts lines before the line with a marker of kubebuilder, indented like the marker.
// It reports whether there is such a line.
func insertAt(content []byte, marker, text string) ([]byte, bool) {
	lines := bytes.SplitAfter(content, []byte("\n"))
	for i, line := range lines {
		if !bytes.HasSuffix(bytes.TrimSpace(line), []byte("+kubebuilder:scaffold:"+marker)) {
			continue
		}
		indent := string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
		var indented strings.Builder
		for added := range strings.Lines(text) {
			if strings.TrimSpace(added) != "" {
				indented.WriteString(indent)
			}
			indented.WriteString(added)
		}
		return joinAt(lines, i, indented.String()), true
	}
	return content, false
}

// addEntry adds a file to the resources of a kustomization, at a marker, unless it is there.
func addEntry(content []byte, marker, name string) ([]byte, bool) {
	for line := range bytes.Lines(content) {
		if entry, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("- ")); ok && string(bytes.Trim(entry, `"'`)) == name {
			return content, true
		}
	}
	return insertAt(content, marker, "- "+name+"\n")
}

// metricsReader is the role of those who may read the metrics of an operator, and its reports.
var metricsReader = file{"metrics_reader_role.yaml", "config/rbac/metrics_reader_role.yaml"}

// reports are the paths beside the metrics, which the role of kubebuilder does not have.
var reports = []string{"/debug/ctrlkit/explain", "/debug/ctrlkit/orphans", "/debug/ctrlkit/import", "/debug/ctrlkit/view/*"}

// readReports lets who may read the metrics read the reports, too.
func readReports(content []byte) (extended []byte, missing []string, err error) {
	if bytes.Contains(content, []byte(reports[0])) {
		return content, nil, nil
	}
	lines := bytes.SplitAfter(content, []byte("\n"))
	for i, line := range lines {
		indent, entry, ok := bytes.Cut(line, []byte("- "))
		if !ok || string(bytes.Trim(entry, "\"'\r\n ")) != "/metrics" {
			continue
		}
		var text strings.Builder
		for _, path := range reports {
			fmt.Fprintf(&text, "%s- %q\n", indent, path)
		}
		return joinAt(lines, i+1, text.String()), nil, nil
	}
	return content, []string{fmt.Sprintf("there is no path /metrics among its nonResourceURLs: for ctrlkit explain and view, allow to get %s", strings.Join(reports, ", "))}, nil
}

// A mainEditor adds what a kind needs to cmd/main.go.
type mainEditor struct {
	content []byte
	clean   bool              // whether gofmt would leave it as it is
	imports map[string]string // the names of packages by their paths
	missing []string          // what had no marker, with its text
}

func editMain(content []byte) (*mainEditor, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), mainFile, content, parser.ImportsOnly)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", mainFile, err)
	}
	e := &mainEditor{content: content, imports: map[string]string{}}
	for _, spec := range parsed.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err == nil {
			e.imports[imported] = importName(spec, imported)
		}
	}
	formatted, err := format.Source(content)
	e.clean = err == nil && bytes.Equal(formatted, content)
	return e, nil
}

func importName(spec *ast.ImportSpec, imported string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(imported)
}

// use returns the name of a package, which it imports if main.go does not.
func (e *mainEditor) use(imported, name string) string {
	if known, ok := e.imports[imported]; ok && known != "_" {
		return known
	}
	for base, n := name, 2; slices.Contains(slices.Collect(maps.Values(e.imports)), name); n++ {
		name = base + strconv.Itoa(n)
	}
	e.imports[imported] = name
	text := strconv.Quote(imported) + "\n"
	if name != path.Base(imported) {
		text = name + " " + text
	}
	e.insert("imports", text)
	return name
}

func (e *mainEditor) insert(marker, text string) {
	content, ok := insertAt(e.content, marker, text)
	if !ok {
		e.missing = append(e.missing, fmt.Sprintf("there is no line // +kubebuilder:scaffold:%s. Add this:\n%s", marker, text))
	}
	e.content = content
}

// add registers the types of a kind and adds its controller, unless that is there.
func (e *mainEditor) add(v *values) {
	types := e.use(v.APIPath, v.Alias)
	controllerPath := path.Join(v.Repo, v.controllerDir)
	controllerName := "controller"
	if v.Package != "controller" {
		controllerName = v.Package + "controller"
	}
	controllers := e.use(controllerPath, controllerName)
	if register := types + ".AddToScheme(scheme)"; !bytes.Contains(e.content, []byte(register)) {
		e.insert("scheme", "utilruntime.Must("+register+")\n")
	}
	setup := controllers + ".Setup" + v.Kind + "(mgr"
	if bytes.Contains(e.content, []byte(setup)) {
		return
	}
	e.observe()
	e.insert("builder", fmt.Sprintf(`if err := %s); err != nil {
	setupLog.Error(err, "Failed to create controller", "controller", %q)
	os.Exit(1)
}
`, setup, v.Controller))
}

// observe makes the manager observable, unless that is done: operator.Operator does it.
func (e *mainEditor) observe() {
	name := e.use("github.com/ctrlkit/ctrlkit/operator", "operator")
	call := name + ".Observe(mgr"
	if bytes.Contains(e.content, []byte(name+".Operator{")) || bytes.Contains(e.content, []byte(call)) {
		return
	}
	e.insert("builder", "if err := "+call+`); err != nil { // metrics of reconciles, and the reports of ctrlkit explain
	setupLog.Error(err, "Failed to make the operator observable")
	os.Exit(1)
}
`)
}

// result returns the file, formatted if it was.
func (e *mainEditor) result() ([]byte, error) {
	if !e.clean {
		return e.content, nil
	}
	formatted, err := format.Source(e.content)
	if err != nil {
		return nil, fmt.Errorf("formatting %s: %w", mainFile, err)
	}
	return formatted, nil
}
