// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/show/drawing"
)

// Tree returns decl as a tree: the states with their selectors, and the actions with the states
// that they read.
func Tree(decl *ast.Decl) drawing.Tree {
	states, actions := contents(decl)
	declared := map[string]bool{}
	stateTrees := make([]drawing.Tree, len(states))
	for i, s := range states {
		declared[s.Name.Text] = true
		stateTrees[i] = branch(stateHeading(s), leaves(selectors(s))...)
	}
	actionTrees := make([]drawing.Tree, len(actions))
	for i, a := range actions {
		actionTrees[i] = branch(actionHeading(a), undeclared(a, declared)...)
	}
	root := branch(decl.Name.Text + " for " + decl.Kind.Text)
	if len(states) > 0 {
		root.Children = append(root.Children, branch("state", stateTrees...))
	}
	if len(actions) > 0 {
		root.Children = append(root.Children, branch("action", actionTrees...))
	}
	return root
}

func undeclared(a *ast.Action, declared map[string]bool) []drawing.Tree {
	var missing []drawing.Tree
	for _, arg := range a.Args {
		if !declared[arg.Name.Text] {
			missing = append(missing, branch("state "+arg.Name.Text+" is not declared"))
		}
	}
	return missing
}

func branch(line string, children ...drawing.Tree) drawing.Tree {
	return drawing.Tree{Lines: []string{drawing.Clean(line)}, Children: children}
}

func leaves(lines []string) []drawing.Tree {
	trees := make([]drawing.Tree, len(lines))
	for i, line := range lines {
		trees[i] = branch(line)
	}
	return trees
}
