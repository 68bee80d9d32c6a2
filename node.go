// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit

import (
	"fmt"
	"strings"
)

// A Node describes an action and what it is made of, for drawing and for reading. Package diagram draws it.
type Node struct {
	Kind NodeKind
	// Label is the description of an action, the text of a condition, the time of a Timeout, or the attempts of a Retry.
	Label string
	// Children are the actions inside, in the order given. For KindIfElse they are the one for true and the one for false, for
	// KindFinally the body and the tail.
	Children []Node
	// After, for KindGraph, holds for each child the indexes of the children that it comes after, in rising order.
	After [][]int
}

// NodeKind says what an action is.
type NodeKind int

// The kinds of actions. KindAction is one with work of its own.
const (
	KindAction NodeKind = iota + 1
	KindNop
	KindSequential
	KindJoin
	KindJoinOrdered
	KindParallelJoin
	KindGraph
	KindIf
	KindIfElse
	KindTimeout
	KindRetry
	KindOnce
	KindFinally
)

var kindNames = [...]string{
	KindAction: "Action", KindNop: "Nop", KindSequential: "Sequential", KindJoin: "Join", KindJoinOrdered: "JoinOrdered",
	KindParallelJoin: "ParallelJoin", KindGraph: "Graph", KindIf: "If", KindIfElse: "IfElse", KindTimeout: "Timeout",
	KindRetry: "Retry", KindOnce: "Once", KindFinally: "Finally",
}

// String returns the name of the function that makes such an action.
func (k NodeKind) String() string {
	if k <= 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("NodeKind(%d)", int(k))
	}
	return kindNames[k]
}

// A Describer is an [Action] that can say what it is made of. All actions of this package are; an action of your own that runs
// others should be, or it is drawn as a single box.
type Describer interface {
	Describe() Node
}

// Describe returns what a is made of. An action that is not a [Describer] is a KindAction of its description.
func Describe(a Action) Node {
	if d, ok := a.(Describer); ok {
		return d.Describe()
	}
	return Node{Kind: KindAction, Label: a.Description()}
}

func describeAll(actions []runner) []Node {
	nodes := make([]Node, len(actions))
	for i, a := range actions {
		nodes[i] = a.(Describer).Describe() //nolint:forcetypeassert // every runner is one, see the test of the combinators
	}
	return nodes
}

// String returns the node on one line, as it would be written in Go: Sequential(A, If(ready, B)). A child of a graph names what it comes
// after: Graph(A, B, C after A and B).
func (n Node) String() string {
	if n.Kind == KindAction {
		return n.Label
	}
	if len(n.Children) == 0 && n.Label == "" {
		return n.Kind.String()
	}
	return n.Kind.String() + "(" + strings.Join(n.parts(), ", ") + ")"
}

func (n Node) parts() []string {
	var parts []string
	if n.Label != "" {
		parts = append(parts, n.Label)
	}
	for i, child := range n.Children {
		text := child.String()
		if i < len(n.After) && len(n.After[i]) > 0 {
			text += " after " + n.names(n.After[i])
		}
		parts = append(parts, text)
	}
	return parts
}

func (n Node) names(children []int) string {
	names := make([]string, len(children))
	for i, c := range children {
		names[i] = n.Children[c].String()
	}
	return strings.Join(names, " and ")
}
