// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package markers finds the comments from which controller-gen makes the roles of a project. Two
// commands show them, and simulations say by them which controllers have not run.
package markers

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ctrlkit/ctrlkit/internal/cluster/permission"
	"github.com/ctrlkit/ctrlkit/internal/cluster/rbac"
)

// A Marker is a comment from which controller-gen makes rules.
type Marker struct {
	Place rbac.Place
	Text  string
	rule  rbacv1.PolicyRule
}

// Requests reports whether the marker asks for a part of a grant.
func (m Marker) Requests(g rbac.Grant) bool {
	overlap := func(a, b []string) bool {
		return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
	}
	if len(g.Rule.NonResourceURLs) > 0 {
		return overlap(m.rule.NonResourceURLs, g.Rule.NonResourceURLs) && overlap(m.rule.Verbs, g.Rule.Verbs)
	}
	return overlap(m.rule.APIGroups, g.Rule.APIGroups) && overlap(m.rule.Resources, g.Rule.Resources) && overlap(m.rule.Verbs, g.Rule.Verbs)
}

// Unrun returns which files of markers ask for a grant of a single verb, of those whose controller has
// not run: no request is for the kind of which they ask for the status or the finalizers. It is empty for
// all other grants.
func Unrun(markers []Marker, needs []permission.Need) func(rbac.Grant) string {
	ran := map[string]bool{} // by the file of a controller
	for _, m := range markers {
		for _, resource := range m.rule.Resources {
			if strings.HasSuffix(resource, "/status") || strings.HasSuffix(resource, "/finalizers") {
				ran[m.Place.File] = ran[m.Place.File] || isNeeded(m.rule.APIGroups, resource, needs)
			}
		}
	}
	return func(g rbac.Grant) string {
		var files []string
		for _, m := range markers {
			file := m.Place.File
			if ran, isController := ran[file]; isController && !ran && m.Requests(g) && !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		return strings.Join(files, ", ")
	}
}

// isNeeded reports whether a need is for objects of a resource. An asterisk stands for any.
func isNeeded(groups []string, resource string, needs []permission.Need) bool {
	kind, _, _ := strings.Cut(resource, "/")
	return slices.ContainsFunc(needs, func(n permission.Need) bool {
		needed, _, _ := strings.Cut(n.Resource, "/")
		return (kind == "*" || kind == needed) && (slices.Contains(groups, "*") || slices.Contains(groups, n.Group))
	})
}

// For returns the markers in the Go files of the project whose roles are in files.
func For(files []string) ([]Marker, error) {
	var markers []Marker
	seen := map[string]bool{}
	for _, file := range files {
		root, err := projectOf(file)
		if err != nil {
			return nil, err
		}
		if seen[root] {
			continue
		}
		seen[root] = true
		found, err := in(root)
		if err != nil {
			return nil, err
		}
		markers = append(markers, found...)
	}
	return markers, nil
}

// projectOf returns the directory of the project that a manifest belongs to: the one with the
// directory config around it, or that of the manifest.
func projectOf(file string) (string, error) {
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	for dir := whole; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "config" {
			return filepath.Dir(dir), nil
		}
	}
	if info, err := os.Stat(whole); err == nil && info.IsDir() {
		return whole, nil
	}
	return filepath.Dir(whole), nil
}

// inModule reports whether a directory is in a Go module.
func inModule(dir string) bool {
	for ; !isModule(dir); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			return false
		}
	}
	return true
}

// isModule reports whether a directory is the root of a Go module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// in returns the markers in the Go files below a directory, in the order of the files, without those
// of other modules. The names of the files are relative to the working directory where that is
// shorter.
func in(root string) ([]Marker, error) {
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if !inModule(root) {
		return nil, nil
	}
	var markers []Marker
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "vendor" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || isModule(path)):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(here, path); err == nil && len(rel) < len(path) {
			path = rel
		}
		lines := bufio.NewScanner(bytes.NewReader(src))
		lines.Buffer(nil, len(src)+1)
		for n := 1; lines.Scan(); n++ {
			if rule, ok := permission.ParseMarker(lines.Text()); ok {
				markers = append(markers, Marker{rbac.Place{File: path, Line: n}, strings.TrimSpace(lines.Text()), rule})
			}
		}
		return lines.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("looking for markers in %s: %w", root, err)
	}
	return markers, nil
}
