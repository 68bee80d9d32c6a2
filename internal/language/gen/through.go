// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// rootOf returns the variable that a reference begins with: the target, or the object of a state.
func rootOf(st *model.State) string {
	if st == nil {
		return "target"
	}
	return st.Name + "Object"
}

// A viaView is a state that the selectors of another one refer to.
type viaView struct {
	Name, Root, Field, Reader string
}

// A throughView is an index of the objects of a state by what another state selects that refers to
// it.
type throughView struct {
	kindView
	Var, IndexName, StateName, Root, Wanted string
	Guards                                  []guard
}

// addVia adds the states that the selectors refer to.
func (w *managerWriter) addVia(view *stateView, st *model.State) {
	for _, via := range st.Via() {
		root := rootOf(via)
		view.Via = append(view.Via, viaView{Name: via.Name, Root: root, Field: w.fields[via], Reader: "read" + exported(via.Name)})
		view.Params += ", " + root + " *" + w.kind(via.Kind).Type
		view.Args += ", " + root
	}
}

// addThrough adds the watch of a state that refers to another one. Its objects are found through the
// first state that it refers to: an index has the objects of that by what they alone determine, and
// their targets are found as for an event of theirs. What the target or a further state determines
// is left out, so that more targets may be reconciled than need be.
func (w *managerWriter) addThrough(view stateView, l lookup) {
	if owner := l.state.Owner; owner != nil {
		w.maps[l.state] = fmt.Sprintf("state.ThroughOwner(reader, %s, %q, %q, %s)", w.kind(owner.Kind).New, owner.Kind.Group, owner.Kind.Kind, w.maps[owner])
		w.view.Watches = append(w.view.Watches, watchView{New: view.New, Through: w.maps[l.state], Only: onlyWith(l)})
		return
	}
	w.addOwns(l.state.Owned, view.New)
	if view.Owned && l.state.List {
		return
	}
	via := l.state.Via()[0]
	l = l.determinedBy(via)
	if view.ByName && view.Single { // an object of the name that differs otherwise is an error
		l = l.byNameOnly()
	}
	through := throughView{
		kindView: w.kind(via.Kind), StateName: l.state.Name, Root: rootOf(via),
		IndexName: strconv.Quote(l.definition(w.manager.Target) + " (through)"),
		Var:       w.names.scope.take(w.private+"Through"+exported(via.Name)+"To"+exported(l.state.Name), "State"),
	}
	through.Wanted, through.Guards = w.throughWanted(l, through.Root)
	w.view.Throughs = append(w.view.Throughs, through)
	w.maps[l.state] = fmt.Sprintf("state.Through(reader, %s, %s, func(obj *%s) state.Selection {\nreturn %s\n}, %s)",
		through.NewList, through.Var, view.Type, w.offer(l), w.maps[via])
	w.view.Watches = append(w.view.Watches, watchView{New: view.New, Through: w.maps[l.state], Only: onlyWith(l)})
}

// throughWanted returns the selection of a lookup that the object root determines.
func (w *managerWriter) throughWanted(l lookup, root string) (wanted string, guards []guard) {
	var view stateView
	var literal selectionLiteral
	switch l.namespace.Mode {
	case model.TargetNamespace:
		literal.namespace = root + ".GetNamespace()"
	case model.NamedNamespace:
		literal.namespace = view.value(*l.namespace.Value)
	}
	view.guard(conditionGuards(l))
	if l.name != nil {
		literal.name = view.value(*l.name)
	}
	for _, label := range l.labels {
		literal.addLabel(label.Key, view.value(label.Value))
	}
	for _, field := range l.fields {
		literal.addField(w.index(l.state.Kind, field)+".Name", view.value(field.Value))
	}
	return literal.String(), view.Guards
}

// determinedBy returns the lookup without what more than the objects of a state determines.
func (l lookup) determinedBy(via *model.State) lookup {
	certain := func(value model.Value) bool {
		return !slices.ContainsFunc(value.Parts, func(p model.Part) bool { return p.Ref != nil && p.Ref.State != via })
	}
	if l.name != nil && !certain(*l.name) {
		l.name = nil
	}
	switch l.namespace.Mode {
	case model.TargetNamespace:
		if via.Namespace.Mode != model.TargetNamespace {
			l.namespace = model.Namespace{Mode: model.AllNamespaces}
		}
	case model.NamedNamespace:
		if !certain(*l.namespace.Value) {
			l.namespace = model.Namespace{Mode: model.AllNamespaces}
		}
	}
	other := func(selector model.Selector) bool { return !certain(selector.Value) }
	l.conditions = slices.DeleteFunc(slices.Clone(l.conditions), other)
	l.labels = slices.DeleteFunc(slices.Clone(l.labels), other)
	l.fields = slices.DeleteFunc(slices.Clone(l.fields), other)
	return l
}
