// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	_ "embed"
	"regexp"
	"slices"
	"strings"
)

//go:generate go test -run TestBuiltinTable -update

// A builtinPackage is a row of the table of the packages with Kubernetes' own kinds.
type builtinPackage struct {
	Path, Group, Version string
	// Namespaced and Cluster are the names of the kinds by scope, NoList those without a list type.
	Namespaced, Cluster, NoList []string
}

// label is how the group and version are written in a document.
func (b *builtinPackage) label() string { return gvLabel(b.Group, b.Version) }

func gvLabel(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

// shortGroup is the group without the domain that Kubernetes gave to its later groups.
func shortGroup(group string) string {
	short, _, _ := strings.Cut(group, ".")
	return short
}

// builtinText has a line for each package: its path, group and version, and its kinds, of which
// those with an asterisk are cluster-scoped and those with an exclamation mark have no list type.
//
//go:embed builtin.txt
var builtinText string

func builtinTable() []builtinPackage {
	var table []builtinPackage
	for line := range strings.Lines(builtinText) {
		words := strings.Fields(line)
		group, version, _ := splitGroupVersion(words[1])
		b := builtinPackage{Path: words[0], Group: group, Version: version}
		for _, word := range words[2:] {
			kind := strings.TrimRight(word, "*!")
			if strings.Contains(word, "*") {
				b.Cluster = append(b.Cluster, kind)
			} else {
				b.Namespaced = append(b.Namespaced, kind)
			}
			if strings.Contains(word, "!") {
				b.NoList = append(b.NoList, kind)
			}
		}
		table = append(table, b)
	}
	return table
}

// builtins are views of the table, made once.
var builtins = newBuiltinIndex(builtinTable())

type builtinIndex struct {
	byPath  map[string]*builtinPackage
	byLabel map[string]*builtinPackage
	byKind  map[string][]*builtinPackage
	// kinds are the names in byKind, labels those in byLabel, sorted, for near names.
	kinds, labels []string
}

func newBuiltinIndex(table []builtinPackage) builtinIndex {
	x := builtinIndex{
		byPath:  map[string]*builtinPackage{},
		byLabel: map[string]*builtinPackage{},
		byKind:  map[string][]*builtinPackage{},
	}
	for i := range table {
		b := &table[i]
		x.byPath[b.Path] = b
		x.byLabel[b.label()] = b
		x.labels = append(x.labels, b.label())
	}
	for i := range table {
		b := &table[i]
		short := gvLabel(shortGroup(b.Group), b.Version)
		if _, taken := x.byLabel[short]; !taken {
			x.byLabel[short] = b
			x.labels = append(x.labels, short)
		}
		x.addKinds(b)
	}
	for kind := range x.byKind {
		x.kinds = append(x.kinds, kind)
	}
	slices.Sort(x.kinds)
	slices.Sort(x.labels)
	return x
}

var stableVersion = regexp.MustCompile(`^v[0-9]+$`)

// addKinds makes the kinds of a package available by their bare names: those of stable versions
// that can be listed. Of several versions of a group the newest counts.
func (x *builtinIndex) addKinds(b *builtinPackage) {
	if !stableVersion.MatchString(b.Version) {
		return
	}
	for _, kind := range append(slices.Clone(b.Namespaced), b.Cluster...) {
		if slices.Contains(b.NoList, kind) {
			continue
		}
		others := x.byKind[kind]
		same := slices.IndexFunc(others, func(o *builtinPackage) bool { return o.Group == b.Group })
		switch {
		case same < 0:
			x.byKind[kind] = append(others, b)
			slices.SortFunc(x.byKind[kind], func(a, b *builtinPackage) int { return cmp.Compare(a.Group, b.Group) })
		case len(others[same].Version) < len(b.Version) || len(others[same].Version) == len(b.Version) && others[same].Version < b.Version:
			others[same] = b
		}
	}
}

// lookupBuiltin returns the row of a package, nil when the package is not Kubernetes' own.
func lookupBuiltin(path string) *builtinPackage { return builtins.byPath[path] }
