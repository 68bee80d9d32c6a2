// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package writes

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/ctrlkit/ctrlkit/internal/sim/report"
)

// maxFrames is how much of a stack is recorded; maxSites is how many lines of it are shown.
const (
	maxFrames = 96
	maxSites  = 3
)

// Stack returns the stack of the goroutine that calls it, without skip callers. It is cheap: lines
// of code are looked up only for what is reported.
func Stack(skip int) []uintptr {
	var pcs [maxFrames]uintptr
	n := runtime.Callers(skip+2, pcs[:])
	return append([]uintptr(nil), pcs[:n]...)
}

// ctrlkit is the path of this module, whose engines operators are built on.
const ctrlkit = "github.com/ctrlkit/ctrlkit"

// libraries are what operators are built on: their lines say nothing about a mistake.
var libraries = []string{"k8s.io/", "sigs.k8s.io/", "golang.org/", "github.com/go-logr/"}

// A module is where the code of the operator is.
type module struct{ path, dir string }

// theModule is that of the test that is running: its working directory is that of its package.
var theModule = sync.OnceValue(func() module {
	dir, err := os.Getwd()
	if err != nil {
		return module{}
	}
	return moduleOf(dir)
})

// moduleOf returns the module of a directory.
func moduleOf(dir string) module {
	for {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(data)) {
				if path, ok := strings.CutPrefix(line, "module "); ok {
					return module{strings.Trim(strings.TrimSpace(path), `"`), dir}
				}
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return module{}
		}
		dir = up
	}
}

// Sites returns the lines of the operator's code in a stack, the innermost first. Where there are
// none, because a library makes the write in a goroutine of its own, it returns the line of that
// library.
func Sites(pcs []uintptr) []report.Site { return theModule().sites(pcs) }

// requesters are the results of [Requester], which is asked for the same stacks in each run.
var requesters sync.Map // text of a stack to the requester

// Requester returns who makes a request: the innermost line of the operator's code in a stack, the
// innermost package of a library that has none of it above itself, or nothing. Of a library, the
// package is one that can be imported, if there is one.
func Requester(pcs []uintptr) string {
	key := fmt.Sprint(pcs)
	if known, ok := requesters.Load(key); ok {
		return known.(string)
	}
	by := theModule().requester(pcs)
	requesters.Store(key, by)
	return by
}

func (m module) requester(pcs []uintptr) string {
	library := ""
	frames := runtime.CallersFrames(pcs)
	for more := len(pcs) > 0; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		switch m.kindOf(frame.Function, frame.File) {
		case ownCode:
			return report.Site{File: m.relative(frame.File), Line: frame.Line}.String()
		case otherCode:
			if library == "" || strings.Contains(library, "/internal/") {
				library = packageOf(frame.Function)
			}
		}
	}
	return library
}

func (m module) sites(pcs []uintptr) []report.Site {
	if len(pcs) == 0 {
		return nil
	}
	var own, library []report.Site
	frames := runtime.CallersFrames(pcs)
	for {
		frame, more := frames.Next()
		site := report.Site{File: m.relative(frame.File), Line: frame.Line, Function: shortFunction(frame.Function)}
		switch m.kindOf(frame.Function, frame.File) {
		case ownCode:
			if len(own) == 0 || own[len(own)-1].File != site.File || own[len(own)-1].Line != site.Line {
				own = append(own, site)
			}
		case otherCode:
			library = append(library, site)
		}
		if !more || len(own) == maxSites {
			break
		}
	}
	if len(own) > 0 {
		return own
	}
	return library[:min(len(library), 1)]
}

// SiteOfText returns the innermost line of the operator's code in the text of a goroutine's stack,
// as runtime.Stack writes it, and the empty string if there is none.
func SiteOfText(stack string) string { return theModule().siteOfText(stack) }

func (m module) siteOfText(stack string) string {
	lines := strings.Split(stack, "\n")
	for i, line := range lines[:max(0, len(lines)-1)] {
		place, ok := strings.CutPrefix(lines[i+1], "\t")
		arguments := strings.LastIndexByte(line, '(')
		if !ok || arguments < 0 {
			continue
		}
		place, _, _ = strings.Cut(place, " ")
		file, number, ok := cutLast(place, ':')
		if n, err := strconv.Atoi(number); ok && err == nil && m.kindOf(line[:arguments], file) == ownCode {
			return report.Site{File: m.relative(file), Line: n}.String()
		}
	}
	return ""
}

func cutLast(s string, at byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, at)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// Whose code a frame is.
const (
	libraryCode = iota // of the libraries that all operators are built on
	otherCode          // of other libraries
	ownCode            // of the operator's module
)

// kindOf returns whose code a function is.
func (m module) kindOf(function, file string) int {
	path := packageOf(function)
	switch {
	case path == ctrlkit || strings.HasPrefix(path, ctrlkit+"/"):
		switch {
		case isExample(path, file):
			return ownCode
		case path == ctrlkit+"/sim" || strings.HasPrefix(path, ctrlkit+"/sim/") || strings.HasPrefix(path, ctrlkit+"/internal/sim/"):
			return libraryCode
		}
		return otherCode // an engine: better than nothing
	case m.contains(path, file):
		return ownCode
	case !strings.Contains(strings.SplitN(path, "/", 2)[0], "."):
		return libraryCode // the standard library, or the main function that go test makes
	}
	for _, prefix := range libraries {
		if strings.HasPrefix(path, prefix) {
			return libraryCode
		}
	}
	return otherCode
}

// isExample reports whether a package of this module is the code of an operator.
func isExample(path, file string) bool {
	if strings.HasSuffix(file, "_test.go") {
		return true
	}
	for _, part := range []string{"/examples/", "/testdata/", "/mutants", "/golden/", "/bench"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}

// contains reports whether a package belongs to the module.
func (m module) contains(path, file string) bool {
	switch {
	case m.path == "":
		return false
	case path == m.path || strings.HasPrefix(path, m.path+"/"):
		return true
	}
	// A command has the path "main"; what is vendored is no code of the module.
	return path == "main" && strings.HasPrefix(file, m.dir+string(filepath.Separator))
}

// relative returns the path of a file in the module.
func (m module) relative(file string) string {
	if m.path == "" {
		return file
	}
	if rest, ok := strings.CutPrefix(file, m.dir+string(filepath.Separator)); ok {
		return filepath.ToSlash(rest)
	}
	if rest, ok := strings.CutPrefix(file, m.path+"/"); ok { // with -trimpath
		return rest
	}
	if i := strings.LastIndex(file, "/pkg/mod/"); i >= 0 {
		return file[i+len("/pkg/mod/"):]
	}
	return file
}

// packageOf returns the import path of a function, "example.com/a/b" of "example.com/a/b.(*T).F".
func packageOf(function string) string {
	slash := strings.LastIndex(function, "/")
	dot := strings.Index(function[slash+1:], ".")
	if dot < 0 {
		return function
	}
	return strings.TrimSuffix(function[:slash+1+dot], "_test")
}

// shortFunction returns a function without the path of its package: "(*T).F". Closures have the
// name of the function around them.
func shortFunction(function string) string {
	short := strings.TrimPrefix(function[len(packageOf(function)):], "_test")
	short = strings.TrimPrefix(short, ".")
	if i := strings.Index(short, ".func"); i > 0 {
		short = short[:i]
	}
	return strings.ReplaceAll(short, "[...]", "")
}
