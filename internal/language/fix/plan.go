// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package fix

import (
	"bytes"
	"cmp"
	"context"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// A Plan says what to change.
type Plan struct {
	Files    []File   // to write, sorted by name
	Remove   []string // files that the original generator wrote
	Generate []string // directories of documents to generate again
	Left     []Remark // what a person has to change, sorted by place
}

// A File is one that is rewritten.
type File struct {
	Name          string // absolute
	Before, After []byte
}

// A Remark is about a name that was left as it is.
type Remark struct {
	File    string // absolute
	Line    int
	Name    string
	Instead string
}

// Load returns what to change in packages. It changes nothing.
func Load(ctx context.Context, o Options) (*Plan, error) {
	l, roots, err := list(ctx, o)
	if err != nil {
		return nil, err
	}
	from := append(slices.Clone(originals), o.From...)
	plan, names := &Plan{Left: excluded(l.excluded, from)}, newManagers()
	generated := map[string]bool{}
	for _, p := range roots {
		for _, file := range p.GoFiles {
			s, err := l.source(file)
			if err != nil {
				return nil, err
			}
			if generated[file] || !isGenerated(s.tree) {
				continue
			}
			if generated[file], err = plan.replace(l.fset, s); err != nil {
				return nil, err
			}
			if generated[file] {
				names.add(p.PkgPath, s.tree)
			}
		}
	}
	done := map[string]bool{}
	for _, p := range roots {
		if slices.Contains(from, p.PkgPath) || isBelow(p.PkgPath, from) {
			continue // a copy of the original library
		}
		u, err := l.unit(p)
		if err != nil {
			return nil, err
		}
		for _, s := range u.sources {
			if done[s.name] || generated[s.name] {
				continue
			}
			done[s.name] = true
			r := &rewriter{editor{fset: l.fset, source: s}, facts{u.info, names}, u, from, map[string]string{}, nil, map[string]string{}}
			if err := r.rewrite(plan); err != nil {
				return nil, err
			}
		}
	}
	plan.sort()
	return plan, nil
}

// excluded returns remarks about files that were not loaded because of their build constraints, and
// import the original library.
func excluded(files, from []string) []Remark {
	var remarks []Remark
	for _, file := range files {
		fset := token.NewFileSet()
		tree, err := parser.ParseFile(fset, file, nil, parser.ImportsOnly)
		if err != nil {
			continue // not Go, or for another version of it
		}
		for _, spec := range tree.Imports {
			if path := pathOf(spec); slices.Contains(from, path) {
				remarks = append(remarks, Remark{file, fset.Position(spec.Pos()).Line, path, "a build constraint excludes this file: run this again with GOFLAGS=-tags=..."})
			}
		}
	}
	return remarks
}

// replace plans to generate again what a file of the original generator has, and reports whether it
// can: whether the documents are there.
func (p *Plan) replace(fset *token.FileSet, s *source) (bool, error) {
	dir := filepath.Dir(s.name)
	declared, err := declaredIn(dir)
	if err != nil {
		return false, err
	}
	for _, name := range managersIn(s.tree) {
		if !slices.Contains(declared, name) {
			line := fset.Position(s.tree.Name.Pos()).Line
			p.Left = append(p.Left, Remark{s.name, line, name, "put the document that declares it beside this file, and run this again"})
			return false, nil
		}
	}
	p.Remove = append(p.Remove, s.name)
	if !slices.Contains(p.Generate, dir) {
		p.Generate = append(p.Generate, dir)
	}
	return true, nil
}

func (p *Plan) sort() {
	p.Files = slices.DeleteFunc(p.Files, func(f File) bool { return bytes.Equal(f.Before, f.After) })
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	slices.Sort(p.Remove)
	slices.Sort(p.Generate)
	slices.SortFunc(p.Left, func(a, b Remark) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Name, b.Name))
	})
	p.Left = slices.Compact(p.Left)
}
