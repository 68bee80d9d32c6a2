// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package outline describes workflows: which actions one is made of, and how they are combined. It is
// a package of its own because the journal, on which package ctrlkit stands, has outlines, too.
// Authors know its types as ctrlkit.Node.
package outline

import (
	"fmt"
	"strings"
)

// A Node describes an action and the actions inside it.
type Node struct {
	Kind Kind
	// Label is the description of an action, the text of a condition, the time of a Timeout, the
	// attempts of a Retry, or how many actions of a ParallelJoin or Graph run at the same time.
	Label string
	// Children are the actions inside, in the order given. Those of KindIfElse are the action for
	// true and the one for false, those of KindFinally the body and the tail.
	Children []Node
	// After holds, for KindGraph, the indexes of the children that each child comes after, in
	// rising order.
	After [][]int
}

// A Kind is the function of package ctrlkit that makes an action.
type Kind int

// The kinds of actions. KindAction is one with work of its own.
const (
	KindAction Kind = iota + 1
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
func (k Kind) String() string {
	if k <= 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// String returns the node on one line, as one would write it in Go: Sequential(A, If(ready, B)). A
// child of a graph names what it comes after: Graph(A, B, C after A and B).
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
