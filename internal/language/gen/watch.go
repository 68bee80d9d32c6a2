// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// addWatch adds the watches for the state's objects.
//
//   - Owned objects are watched by their owner references.
//   - A single owned object is watched by its selectors as well. While it has another owner, the
//     state is an error, which ends with an event of that object.
//   - A single object that is selected by its name is watched by its name only, for the same
//     reason.
func (w *managerWriter) addWatch(view stateView, l lookup) {
	w.addOwns(l.state.Owned, view.New)
	index, definition := "state.TargetIndex", l.definition(w.manager.Target)
	switch {
	case view.Each != nil:
		index, definition = "state.NamesIndex", l.nameDefinition(w.manager.Target)
		l = l.byNameOnly()
	case l.byName() && view.Single:
		index, definition = "state.NameIndex", l.nameDefinition(w.manager.Target)
		l = l.byNameOnly()
	}
	if view.Owned && l.state.List {
		return
	}
	known := w.watches[definition]
	if known == "" {
		w.watches[definition] = w.names.scope.take(w.private+"By"+exported(l.state.Name), "State")
	}
	offer := w.offer(l).String()
	w.maps[l.state] = fmt.Sprintf("state.Targets(reader, %s, %s, func(obj *%s) state.Selection {\nreturn %s\n})",
		w.view.Target.NewList, w.watches[definition], view.Type, offer)
	if known != "" {
		return
	}
	w.view.Watches = append(w.view.Watches, watchView{
		Var:       w.watches[definition],
		Index:     index,
		IndexName: strconv.Quote(definition),
		StateName: l.state.Name,
		Type:      view.Type,
		New:       view.New,
		Select:    view.Select,
		Offer:     offer,
		Only:      onlyWith(l),
	})
}

func (w *managerWriter) addOwns(owned model.Ownership, object string) {
	if owned == model.OwnershipNone {
		return
	}
	i := slices.IndexFunc(w.view.Owns, func(owns ownsView) bool { return owns.New == object })
	if i < 0 {
		i = len(w.view.Owns)
		w.view.Owns = append(w.view.Owns, ownsView{New: object})
	}
	w.view.Owns[i].EveryOwner = w.view.Owns[i].EveryOwner || owned == model.OwnershipAny
}

// offer returns the selection that selects obj: it has the same fields as the wanted selection,
// with the values of obj.
func (w *managerWriter) offer(l lookup) *selectionLiteral {
	var literal selectionLiteral
	if l.hasNamespace() {
		literal.namespace = "obj.GetNamespace()"
	}
	if l.name != nil {
		literal.name = "obj.GetName()"
	}
	for _, label := range l.labels {
		literal.addLabel(label.Key, fmt.Sprintf("obj.GetLabels()[%q]", label.Key))
	}
	for _, field := range l.fields {
		index := w.index(l.state.Kind, field)
		literal.addField(index+".Name", index+".Value(obj)")
	}
	return &literal
}
