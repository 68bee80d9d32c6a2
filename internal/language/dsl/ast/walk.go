// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ast

import "iter"

// Walk visits the tree below root in the order of the source, a node before the nodes below it.
//
//   - It calls f for root, then for each child of root in the same way, and then f(nil).
//   - If f returns false for a node, the node's children and the call f(nil) are left out.
//   - Comments are visited as children of the node that they belong to, parts that are missing in a
//     document with a mistake are not.
func Walk(root Node, f func(Node) bool) {
	if !f(root) {
		return
	}
	children(root, func(child Node) bool {
		Walk(child, f)
		return true
	})
	f(nil)
}

// All returns the nodes of type N in the tree below root, root included, in the order of the
// source: All[Node] returns every node.
func All[N Node](root Node) iter.Seq[N] {
	return func(yield func(N) bool) {
		var visit func(Node) bool
		visit = func(n Node) bool {
			if wanted, ok := n.(N); ok && !yield(wanted) {
				return false
			}
			return children(n, visit)
		}
		visit(root)
	}
}

// children calls visit for each child of n until it returns false, and reports whether it never
// did.
func children(n Node, visit func(Node) bool) bool {
	v := &visitor{visit: visit}
	if item, ok := n.(Item); ok {
		v.comments(item.Above().Doc)
	}
	switch n := n.(type) {
	case *File:
		v.items(n.Items)
	case *Bind:
		v.words(&n.GroupVersion, &n.Package)
		v.comment(n.Trailing)
	case *Alias:
		v.words(&n.Name, &n.Kind)
		v.comment(n.Trailing)
	case *Decl:
		v.words(&n.Name, &n.Kind)
		v.block(&n.Body)
	case *Section:
		v.words(&n.Keyword)
		v.block(&n.Body)
	case *State:
		v.words(&n.Name, &n.Kind)
		v.block(&n.Body)
	case *Block:
		v.comment(n.Open)
		v.items(n.Items)
		v.comment(n.Close)
	case *Selector:
		v.selector(n)
	case *Value:
		for i := range n.Parts {
			v.node(&n.Parts[i])
		}
	case *Part:
		if n.Ref != nil {
			v.node(n.Ref)
		}
	case *Ref:
		for i := range n.Path {
			v.words(&n.Path[i])
		}
	case *Action:
		v.action(n)
	case *Arg:
		v.words(&n.Name)
		v.comment(n.Trailing)
	}
	return !v.done
}

// A visitor calls visit for one child after the other, until it returns false.
type visitor struct {
	visit func(Node) bool
	done  bool
}

func (v *visitor) node(n Node) { v.done = v.done || !v.visit(n) }

func (v *visitor) words(words ...*Word) {
	for _, w := range words {
		if w.Range != (Range{}) {
			v.node(w)
		}
	}
}

func (v *visitor) comment(c *Comment) {
	if c != nil {
		v.node(c)
	}
}

func (v *visitor) comments(list []Comment) {
	for i := range list {
		v.node(&list[i])
	}
}

func (v *visitor) items(items []Item) {
	for _, item := range items {
		v.node(item)
	}
}

func (v *visitor) block(b *Block) {
	if b.Range != (Range{}) {
		v.node(b)
	}
}

func (v *visitor) selector(n *Selector) {
	v.words(&n.Key)
	if n.Value.Range != (Range{}) {
		v.node(&n.Value)
	}
	v.words(&n.Op)
	for _, value := range n.Set {
		v.node(value)
	}
	v.comment(n.Trailing)
}

func (v *visitor) action(n *Action) {
	v.words(&n.Name)
	v.comment(n.Open)
	for _, arg := range n.Args {
		v.node(arg)
	}
	v.comments(n.Tail)
	v.comment(n.Trailing)
}
