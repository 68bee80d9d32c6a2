// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package minted learns which names an operator makes of what differs between two runs, such as a hash
// of the UID of an owner: "secrets default/cache-1f3a90c2" in one run and "secrets default/cache-77b0e41d"
// in another. Both are called "secrets default/cache-*" then, as names that the server generates.
package minted

import (
	"regexp"
	"slices"
	"strings"
)

// A Name is what some things are called: what comes before and after the part that differs between
// runs, and how long that part is.
type Name struct {
	prefix, suffix    string // "secrets default/cache-", ""
	shortest, longest int
	letters           string // of the part beside digits: those of hexadecimal numbers, or all
}

// Names are all that were learned.
type Names []Name

// part matches what can be a hash in a name.
var part = regexp.MustCompile(`^[0-9a-z]+$`)

const (
	digits      = "0123456789"
	hexadecimal = "abcdef"
	all         = "abcdefghijklmnopqrstuvwxyz"
)

// shortest is the length of the shortest part that is taken for a hash.
const shortest = 5

// of returns the part of a thing that differs between runs.
func (n Name) of(thing string) (string, bool) {
	rest, ok := strings.CutPrefix(thing, n.prefix)
	if !ok {
		return "", false
	}
	token, ok := strings.CutSuffix(rest, n.suffix)
	return token, ok && len(token) >= n.shortest && len(token) <= n.longest && strings.Trim(token, digits+n.letters) == ""
}

// Part returns the part of a thing ("secrets default/cache-1f3a90c2") that differs between runs, and
// whether it has one.
func (n Names) Part(thing string) (string, bool) {
	for _, name := range n {
		if token, ok := name.of(thing); ok {
			return token, true
		}
	}
	return "", false
}

// Replacer returns what replaces these parts of things by "*", in all texts; nil if there is none.
func (n Names) Replacer(things []string) *strings.Replacer {
	var parts []string
	for _, thing := range things {
		if token, ok := n.Part(thing); ok && !slices.Contains(parts, token) {
			parts = append(parts, token)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	slices.SortFunc(parts, func(a, b string) int { return len(b) - len(a) }) // one may be the beginning of another
	var pairs []string
	for _, token := range parts {
		pairs = append(pairs, token, "*")
	}
	return strings.NewReplacer(pairs...)
}

// Learn compares two runs in which the same has happened: the contents of things, as texts. It returns
// the names of those that have a counterpart in the other run which differs in one part of the name,
// and where the content has that part, and in nothing else. A part of digits only is no hash but a time
// or a number.
func Learn(a, b map[string]string) Names {
	onlyA, onlyB := without(a, b), without(b, a)
	var names Names
	for _, thing := range onlyA {
		for _, other := range onlyB {
			name, token, otherToken, ok := between(thing, other)
			if ok && strings.ReplaceAll(a[thing], token, "*") == strings.ReplaceAll(b[other], otherToken, "*") {
				names = names.with(name)
			}
		}
	}
	return slices.DeleteFunc(names, func(n Name) bool { return n.count(onlyA) != n.count(onlyB) })
}

// without returns the things that only the first of two runs has, in order.
func without(a, b map[string]string) (only []string) {
	for thing := range a {
		if _, ok := b[thing]; !ok {
			only = append(only, thing)
		}
	}
	slices.Sort(only)
	return only
}

// with adds a name, which may have parts of other lengths than one that is there.
func (n Names) with(name Name) Names {
	for i := range n {
		if n[i].prefix == name.prefix && n[i].suffix == name.suffix {
			if name.letters == all {
				n[i].letters = all
			}
			n[i].shortest, n[i].longest = min(n[i].shortest, name.shortest), max(n[i].longest, name.longest)
			return n
		}
	}
	return append(n, name)
}

func (n Name) count(things []string) (count int) {
	for _, thing := range things {
		if _, ok := n.of(thing); ok {
			count++
		}
	}
	return count
}

// between returns what two things are called if they differ in one part of their names that can be a
// hash. A number that is printed without leading zeros can be shorter.
func between(a, b string) (n Name, tokenA, tokenB string, ok bool) {
	begin := 0
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if !part.MatchString(a[i : i+1]) {
			begin = i + 1
		}
	}
	endA, endB := end(a, begin), end(b, begin)
	tokenA, tokenB = a[begin:endA], b[begin:endB]
	if !strings.Contains(a[:begin], " ") || a[endA:] != b[endB:] || !hash(tokenA, tokenB) {
		return Name{}, "", "", false
	}
	n = Name{
		prefix: a[:begin], suffix: a[endA:], shortest: max(shortest, min(len(tokenA), len(tokenB))-1), longest: max(len(tokenA), len(tokenB)) + 1, letters: hexadecimal,
	}
	if strings.Trim(tokenA+tokenB, digits+hexadecimal) != "" {
		n.letters = all
	}
	return n, tokenA, tokenB, true
}

// end returns where the part ends that begins at a place.
func end(text string, begin int) int {
	for begin < len(text) && part.MatchString(text[begin:begin+1]) {
		begin++
	}
	return begin
}

// hash reports whether two parts can be hashes of different values.
func hash(a, b string) bool {
	number := func(s string) bool { return strings.Trim(s, digits) == "" }
	return a != b && min(len(a), len(b)) >= shortest && max(len(a), len(b))-min(len(a), len(b)) <= 2 && !(number(a) && number(b))
}
