// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// element is the variable for an element of a list, which is a pointer.
const element = "element"

// An eachView is the loop over the elements of a list whose objects a state has.
type eachView struct {
	Open   []string // the lines before the name
	Name   string   // the expression for the name in an element
	Guards []guard  // without these, an element names no object
	Close  string
}

// newEachView returns the loop for a name with references to elements, and the guards of its other
// references, and those beside it. An element without a name is left out.
func newEachView(name model.Value, beside []guard) (*eachView, []guard) {
	var view eachView
	root, otherwise := "target", "return nil, nil"
	for path := name.Elements(); len(path) > 0; {
		n := slices.IndexFunc(path, func(step model.Step) bool { return step.Each }) + 1
		way := slices.Clone(path[:n])
		path = path[n:]
		view.open(root, way, otherwise)
		root, otherwise = element, "continue"
		view.Close += "}\n"
	}
	var others []guard
	named, guards := valueExpr(name)
	view.Name = named
	for _, g := range slices.Concat(guards, beside) {
		switch {
		case !g.inElement:
			others = append(others, g)
		case !slices.Contains(view.Guards, g):
			view.Guards = append(view.Guards, g)
		}
	}
	return &view, others
}

// open adds a loop over a list.
func (v *eachView) open(root string, way []model.Step, otherwise string) {
	if way[0].Key {
		keys := root
		for _, step := range way {
			keys += ", " + strconv.Quote(step.Field)
		}
		v.Open = append(v.Open, fmt.Sprintf("for _, %s := range state.Elements(%s) {", element, keys))
		return
	}
	pointers := way[len(way)-1].Pointer
	way[len(way)-1].Pointer = false
	expr, guards := pathExpr(root, way, model.TextString)
	for _, g := range guards {
		v.Open = append(v.Open, fmt.Sprintf("if %s {\n%s\n}", g.Cond, otherwise))
	}
	index := "i" + strings.Repeat("i", len(v.Open))
	if pointers {
		v.Open = append(v.Open, fmt.Sprintf("for _, %s := range %s {\nif %s == nil {\ncontinue\n}", element, expr, element))
		return
	}
	v.Open = append(v.Open, fmt.Sprintf("for %s := range %s {\n%s := &%s[%s]", index, expr, element, expr, index))
}
