// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A StateDescription is what the generated code does for a state, in words.
type StateDescription struct {
	// Getter is the method that returns the state, and Result what it returns.
	Getter, Result string
	// Doc is the comment of the getter.
	Doc []string
	// Indexes are the names of the indexes that the objects are read by.
	Indexes []string
	// Watch says which events reconcile which targets.
	Watch string
	// Rule is the marker of the rights that reading the state takes.
	Rule string
	// Requests says what is asked of the API server.
	Requests string
}

// DescribeState describes a state of a package in which the checker found no error. It returns nil
// if there is no such state.
func DescribeState(pkg *model.Package, document, manager, state string) *StateDescription {
	m := managerNamed(pkg, document, manager)
	if m == nil {
		return nil
	}
	i := slices.IndexFunc(m.States, func(st *model.State) bool { return st.Name == state })
	if i < 0 {
		return nil
	}
	st, d := m.States[i], documentNamed(pkg, document)
	names := newPackageNames(pkg)
	w := newManagerWriter(m, newImports(pkg, d), names)
	view := w.write()
	l := newLookup(st)
	result := &StateDescription{
		Getter: view.States[i].Getter, Result: view.States[i].Result, Doc: w.getterDoc(st, l),
		Watch: watchText(st, l), Rule: strings.TrimPrefix(ruleOf(st.Kind, w.addOnly(st.Kind)), "// "),
		Requests: "none in a reconcile: the cache answers, once; the cache lists and watches the kind",
	}
	for _, field := range l.fields {
		if !l.byName() {
			result.Indexes = append(result.Indexes, indexName(field, m.Target))
		}
	}
	return result
}

// DescribeAction returns the Go signature of the method that implements an action, empty if there is
// no such action in the package.
func DescribeAction(pkg *model.Package, document, manager, action string) string {
	m := managerNamed(pkg, document, manager)
	if m == nil {
		return ""
	}
	view := newManagerView(m, newImports(pkg, documentNamed(pkg, document)), newPackageNames(pkg))
	for _, a := range view.Actions {
		if a.Name == action {
			return a.Signature()
		}
	}
	return ""
}

// Signature is that of the method that implements the action, without its receiver.
func (a actionView) Signature() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s(ctx context.Context, logger logr.Logger", a.Name)
	for _, st := range a.States {
		fmt.Fprintf(&b, ", %s %s", st.Local, st.Result)
	}
	b.WriteString(") (ctrl.Result, error)")
	return b.String()
}

func documentNamed(pkg *model.Package, name string) *model.Document {
	for _, d := range pkg.Documents {
		if d.File == name {
			return d
		}
	}
	return nil
}

func managerNamed(pkg *model.Package, document, name string) *model.Manager {
	d := documentNamed(pkg, document)
	if d == nil {
		return nil
	}
	for _, m := range d.Managers {
		if m.Name == name {
			return m
		}
	}
	return nil
}

// watchText says how the objects of a state are watched. See addWatch and addThrough.
func watchText(st *model.State, l lookup) string {
	owner := map[model.Ownership]string{
		model.OwnershipController: "by the controlling owner reference",
		model.OwnershipAny:        "by any owner reference",
	}[st.Owned]
	var selected string
	switch via := st.Via(); {
	case st.Owner != nil:
		return owner + ", through the state " + st.Owner.Name
	case owner != "" && st.List:
		return owner
	case len(via) > 0:
		selected = "through the state " + via[0].Name
	case l.each() != nil || l.byName() && !st.List:
		selected = "by the name, which an index of the targets has"
	default:
		selected = "by the selectors, whose values an index of the targets has"
	}
	if owner != "" {
		return owner + ", and " + selected
	}
	return selected
}

// ruleOf returns the marker for the right to read a kind.
func ruleOf(kind model.Kind, names string) string {
	resource := kind.Resource
	if resource == "" {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind})
		resource = plural.Resource
	}
	group := kind.Group
	if group == "" {
		group = `""`
	}
	return fmt.Sprintf("// +kubebuilder:rbac:groups=%s,resources=%s,verbs=get;list;watch%s", group, resource, names)
}
