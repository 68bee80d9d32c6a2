// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// table is the third ring: a line for each exploration, with the directory of a package, the tests,
// the number of parts, and the flags of the test binary. In the flags, {i} is the number of the part,
// {n} the number of parts, and {seed} a number that the seed of the exploration chooses.
//
//go:embed explorations.txt
var table string

// A part is what the explorer runs at once: a part of an exploration, of half a minute or less.
type part struct {
	dir   string // of the package
	run   string // the tests
	i, n  int
	flags []string
}

// parseTable returns all parts of a table.
func parseTable(table string) ([]part, error) {
	var parts []part
	for number, line := range strings.Split(table, "\n") {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) < 3 {
			return nil, fmt.Errorf("explorations.txt:%d: want a package, tests, the number of parts, and flags", number+1)
		}
		n, err := strconv.Atoi(words[2])
		if err != nil || n < 1 {
			return nil, fmt.Errorf("explorations.txt:%d: %q is not a number of parts", number+1, words[2])
		}
		flags := strings.Join(words[3:], " ")
		if n > 1 && !strings.Contains(flags, "{i}") && !strings.Contains(flags, "{seed}") && !strings.Contains(words[1], "{i}") {
			return nil, fmt.Errorf("explorations.txt:%d: all %d parts are the same: the flags have neither {i} nor {seed}", number+1, n)
		}
		for i := range n {
			parts = append(parts, part{dir: words[0], run: words[1], i: i + 1, n: n, flags: words[3:]})
		}
	}
	return parts, nil
}

// key names the part in the memory and in what is printed.
func (p part) key() string {
	name := p.dir + " " + p.exploration()
	if p.n == 1 {
		return name
	}
	return fmt.Sprintf("%s %d/%d", name, p.i, p.n)
}

// exploration names the exploration in its package.
func (p part) exploration() string {
	if i := slices.Index(p.flags, "-fuzz"); i >= 0 && i+1 < len(p.flags) {
		return p.flags[i+1]
	}
	return p.run
}

// arguments returns the flags of go test.
func (p part) arguments(seed string) []string {
	chosen := fnv.New32a()
	chosen.Write([]byte(seed + p.key()))
	replacer := strings.NewReplacer("{i}", strconv.Itoa(p.i), "{n}", strconv.Itoa(p.n), "{seed}", strconv.Itoa(int(chosen.Sum32()>>1)))
	args := []string{"-run", replacer.Replace(p.run)}
	for _, flag := range p.flags {
		args = append(args, replacer.Replace(flag))
	}
	return args
}
