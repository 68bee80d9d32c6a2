// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// An onlyView is a kind of which the cache needs some objects only.
type onlyView struct {
	New        string
	Selections []string
}

// Call is the call that limits the cache to them.
func (v onlyView) Call() string {
	return fmt.Sprintf("state.CacheOnly(options, %s, %s)", v.New, strings.Join(v.Selections, ", "))
}

// addOnly adds a kind to those of which the cache needs single objects, if it is one, and returns
// how a rule names them.
func (w *managerWriter) addOnly(kind model.Kind) string {
	if !w.names.only[kind.Key()] {
		return ""
	}
	view := onlyView{New: w.kind(kind).New}
	var names []string
	for _, st := range w.manager.States {
		if st.Kind.Key() != kind.Key() {
			continue
		}
		namespace, name, _ := st.Single()
		selection := selectionLiteral{name: fmt.Sprintf("%q", name)}
		if namespace != "" {
			selection.namespace = fmt.Sprintf("%q", namespace)
		}
		if !slices.Contains(view.Selections, selection.String()) {
			view.Selections = append(view.Selections, selection.String())
		}
		names = append(names, name)
	}
	if !slices.ContainsFunc(w.view.Only, func(other onlyView) bool { return other.New == view.New }) {
		w.view.Only = append(w.view.Only, view)
	}
	slices.Sort(names)
	return ",resourceNames=" + strings.Join(slices.Compact(names), ";")
}
