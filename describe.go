// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import "github.com/ctrlkit/ctrlkit/internal/engine/outline"

// A Node describes an action and the actions inside it: its Kind, its Label and its Children. It is
// data, which holds no action, runs nothing, and can be compared in tests. Package diagram draws it:
//
//	diagram.Text(os.Stdout, ctrlkit.Describe(workflow))
type Node = outline.Node

// A Describer is an [Action] that can describe what it is made of. All actions of this package are;
// an action of your own that runs others should be, or package diagram draws it as a single box. It
// describes itself as the action of this package that runs them as it does:
//
//	func (b besides) Describe() ctrlkit.Node { return ctrlkit.Describe(ctrlkit.Join(b.main, b.other)) }
type Describer interface {
	Describe() Node
}

// Describe returns what a is made of. An action that is not a [Describer] is a single action of its
// description.
func Describe(a Action) Node {
	if d, ok := a.(Describer); ok {
		return d.Describe()
	}
	return Node{Kind: outline.KindAction, Label: a.Description()}
}

func describeAll(actions []runner) []Node {
	nodes := make([]Node, len(actions))
	for i, a := range actions {
		nodes[i] = a.(Describer).Describe() //nolint:forcetypeassert // every runner is one, see the test of the combinators
	}
	return nodes
}
