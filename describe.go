// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import "github.com/ctrlkit/ctrlkit/outline"

// A Describer is an [Action] that can describe what it is made of. All actions of this package are;
// an action of your own that runs others should be, or package diagram draws it as a single box.
type Describer interface {
	Describe() outline.Node
}

// Describe returns what a is made of. An action that is not a [Describer] is an outline.KindAction
// of its description.
func Describe(a Action) outline.Node {
	if d, ok := a.(Describer); ok {
		return d.Describe()
	}
	return outline.Node{Kind: outline.KindAction, Label: a.Description()}
}

func describeAll(actions []runner) []outline.Node {
	nodes := make([]outline.Node, len(actions))
	for i, a := range actions {
		nodes[i] = a.(Describer).Describe() //nolint:forcetypeassert // every runner is one, see the test of the combinators
	}
	return nodes
}
