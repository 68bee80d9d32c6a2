// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package drawing

import (
	"bufio"
	"io"
	"strings"
)

// A Tree is something that is written as lines below lines.
type Tree struct {
	// Lines are what it says. The first stands at the branch, the others below it.
	Lines    []string
	Children []Tree
}

// Branches are the lines that connect a tree.
type Branches struct {
	// Middle and Last lead to a child, Down runs along the children that follow, and None stands
	// below the last one.
	Middle, Last, Down, None string
}

var (
	// BoxBranches are made of box-drawing characters.
	BoxBranches = Branches{"├── ", "└── ", "│   ", "    "}
	// ASCIIBranches are made of characters that every terminal has.
	ASCIIBranches = Branches{"|-- ", "`-- ", "|   ", "    "}
)

// WriteTree writes t. The function paint, which may be nil, changes how the branches look.
func WriteTree(w io.Writer, t Tree, b Branches, paint func(string) string) error {
	if paint == nil {
		paint = func(s string) string { return s }
	}
	p := &treePrinter{w: bufio.NewWriter(w), Branches: b, paint: paint}
	p.tree(t, "", "")
	return p.w.Flush()
}

// A treePrinter leaves errors to the Flush of its writer, which keeps the first one.
type treePrinter struct {
	Branches
	w     *bufio.Writer
	paint func(string) string
}

// tree writes t, with first before its first line and other before every other.
func (p *treePrinter) tree(t Tree, first, other string) {
	for i, line := range t.Lines {
		prefix := first
		if i > 0 {
			prefix = other
			if len(t.Children) > 0 {
				prefix += p.Down
			}
		}
		if prefix != "" {
			prefix = p.paint(prefix)
		}
		p.w.WriteString(strings.TrimRight(prefix+line, " ") + "\n") //nolint:errcheck // see the type
	}
	for i, child := range t.Children {
		if i < len(t.Children)-1 {
			p.tree(child, other+p.Middle, other+p.Down)
		} else {
			p.tree(child, other+p.Last, other+p.None)
		}
	}
}
