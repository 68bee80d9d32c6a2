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

// A managerView is the data of manager.go.tmpl. The template writes every word of it unchanged.
type managerView struct {
	Name       string
	Doc        []string
	Names      managerNames
	Target     kindView
	Fields     struct{ State, Impl, Logger, Options string }
	NewAction  string // the method for actions beside the declared ones
	FakeTarget string
	States     []stateView
	Actions    []actionView
	Indexes    []indexView
	Owns       []ownsView
	Throughs   []throughView
	Watches    []watchView
	// Markers keep controller-gen away from the types in a package that is an API as well.
	Markers string
	// Only are the kinds of which the cache needs single objects. Unstructured is true if there are
	// kinds without Go types. Cache is the function for both, empty if there is nothing for it to do.
	Only         []onlyView
	Unstructured bool
	Cache        string
	// Rules are markers by which controller-gen writes the role that reading the states takes.
	Rules []string
	// Typed are the types for objects of kinds without Go types.
	Typed []*typedView
}

type kindView struct {
	Kind, Type, List string // Type and List qualified
	// New and NewList make an empty object and an empty list, Declare the variable list, which is
	// passed on as Listed.
	New, NewList, Declare, Listed string
}

type stateView struct {
	kindView
	Name                  string
	Read, Result          string // the Go type of what is read, and of what the getter returns
	Typed                 string // the function that makes a Result of a Read, empty if they are the same
	Getter, Reader, Field string
	GetterDoc             []string
	Local                 string // a variable or parameter that holds the state
	FakeValue, FakeError  string

	Single, Owned, ByName bool
	OwnedBy, CheckOwner   string // the functions for lists and single objects
	Owner                 string // what owns them
	Indexes               string // further arguments: the indexes that a named object is compared by
	Items                 string // the items of the list that are meant
	Select                string
	Guards                []guard
	Required              []requiredView
	InTargetNamespace     bool
	Wanted                string
	// Each is the loop over the elements of a list, nil if the state is read at once. None is what
	// the function that returns the selection returns with an error.
	Each *eachView
	None string
	// Via are the states that the selectors refer to, Params and Args the parameters and arguments
	// for them.
	Via          []viaView
	Params, Args string
	// MayBeNothing is true if the state has no object when a reference is empty.
	MayBeNothing bool
}

// A requiredView is a value that must not be empty.
type requiredView struct {
	Var, Expr, Err string
}

type actionView struct {
	Name, Const    string
	Doc, MethodDoc []string
	States         []stateView
}

type indexView struct {
	Var, Name, Type, New, Expr string
	Doc                        []string
	Guards                     []guard
	Registered                 bool // objects are listed by it, so that the cache has to have it
}

// An ownsView is a kind that is watched by owner references.
type ownsView struct {
	New        string
	EveryOwner bool
}

type watchView struct {
	Var, Index, IndexName, StateName, Type, New, Select, Offer string
	Only                                                       string // what objects must have beside that, as a further argument
	// Through is the map function for objects that are found through another state. Then there is no
	// index of the targets.
	Through string
}

// Registrations are the calls that register the indexes.
func (v *managerView) Registrations() []string {
	var calls []string
	for _, index := range v.Indexes {
		if index.Registered {
			calls = append(calls, fmt.Sprintf("%s.Register(ctx, indexer, %s)", index.Var, index.New))
		}
	}
	for _, watch := range v.Watches {
		if watch.Through == "" {
			calls = append(calls, fmt.Sprintf("%s.Register(ctx, indexer, %s)", watch.Var, v.Target.New))
		}
	}
	for _, through := range v.Throughs {
		calls = append(calls, fmt.Sprintf("%s.Register(ctx, indexer, %s)", through.Var, through.New))
	}
	return calls
}

// A managerWriter prepares the view of one manager.
type managerWriter struct {
	manager *model.Manager
	imports *imports
	names   *packageNames
	view    *managerView
	indexes map[string]string // the variables of indexes by kind and name
	watches map[string]string // the variables of watches by definition
	fields  map[*model.State]string
	maps    map[*model.State]string // the map functions from objects of a state to targets
	private string                  // what unexported identifiers begin with
}

func newManagerView(manager *model.Manager, imports *imports, names *packageNames) *managerView {
	return newManagerWriter(manager, imports, names).write()
}

func newManagerWriter(manager *model.Manager, imports *imports, names *packageNames) *managerWriter {
	return &managerWriter{
		manager: manager, imports: imports, names: names,
		indexes: map[string]string{}, watches: map[string]string{}, fields: map[*model.State]string{}, maps: map[*model.State]string{},
		private: unexported(manager.Name),
		view: &managerView{
			Name:  manager.Name,
			Doc:   manager.Doc,
			Names: namesOf(manager),
		},
	}
}

// write prepares the whole view.
func (w *managerWriter) write() *managerView {
	manager := w.manager
	w.view.Target = w.kind(manager.Target)
	if manager.Target.Unstructured() && len(manager.FieldsOf(manager.Target)) > 0 {
		w.typed(manager.Target)
	}
	if w.imports.isOutput(manager.Target.Package) {
		w.view.Markers = "//\n// +kubebuilder:object:generate=false\n"
	}
	if len(w.view.Doc) == 0 {
		w.view.Doc = []string{manager.Name + " makes the actions of a " + manager.Target.Kind + "."}
	}
	w.addFields()
	w.addStates()
	w.addActions()
	w.addRules()
	return w.view
}

func (w *managerWriter) kind(kind model.Kind) kindView {
	view := kindView{
		Kind: kind.Kind,
		Type: w.imports.qualify(kind.Package, kind.Type),
		List: w.imports.qualify(kind.Package, kind.List),
	}
	view.New, view.NewList, view.Declare, view.Listed = "&"+view.Type+"{}", "&"+view.List+"{}", "var list "+view.List, "&list"
	if kind.Unstructured() {
		of := fmt.Sprintf("(%q, %q)", kind.APIVersion(), kind.Kind)
		view.New, view.NewList, view.Listed = "state.NewObject"+of, "state.NewObjectList"+of, "list"
		view.Declare = "list := " + view.NewList
	}
	return view
}

// addFields names the fields of the manager. They must not have the names of its actions.
func (w *managerWriter) addFields() {
	taken := newScope()
	for _, action := range w.manager.Actions {
		taken[action.Name] = true
	}
	w.view.Fields.State = taken.take("state", "Getter")
	w.view.Fields.Impl = taken.take("impl", "Actions")
	w.view.Fields.Logger = taken.take("logger", "Base")
	w.view.Fields.Options = taken.take("opts", "All")
	w.view.NewAction = taken.take("NewAction", "Func")
}

func (w *managerWriter) addStates() {
	locals := newScope(predeclared...)
	for _, name := range slices.Concat(w.imports.all(), []string{"s", "m", "ctx", "err", "impl", "logger", "target"}) {
		locals[name] = true
	}
	for _, action := range w.manager.Actions {
		locals[constOf(w.manager, action)] = true
	}
	fields := newScope("Reader", "target")
	fakes := newScope("Target")
	for _, st := range w.manager.States {
		fields["read"+exported(st.Name)] = true
		fakes["Get"+exported(st.Name)] = true
	}
	w.view.FakeTarget = fakes.take("Object", "")
	for _, st := range w.manager.States {
		view := w.state(st)
		view.Field = fields.take(unexported(st.Name), "State")
		w.fields[st] = view.Field
		view.Local = locals.take(unexported(st.Name), "State")
		view.FakeValue = fakes.take(exported(st.Name), "State")
		w.view.States = append(w.view.States, view)
	}
	for i := range w.view.States {
		w.view.States[i].FakeError = fakes.take(w.view.States[i].FakeValue+"Err", "or")
	}
}

func (w *managerWriter) state(st *model.State) stateView {
	l := newLookup(st)
	kind := w.kind(st.Kind)
	view := stateView{
		kindView: kind, Name: st.Name, Result: "[]" + kind.Type,
		Getter:    "Get" + exported(st.Name),
		Reader:    "read" + exported(st.Name),
		GetterDoc: w.getterDoc(st, l),
		Single:    !st.List, Owned: st.Owned != model.OwnershipNone, ByName: l.byName(),
		OwnedBy: "state.ControlledBy", CheckOwner: "state.CheckController", Owner: "s.target",
		Select: w.names.scope.take("select"+exported(w.private)+exported(st.Name), "State"),
		Items:  "list.Items",
		None:   "state.Selection{}",
	}
	if view.Single {
		view.Result = "*" + kind.Type
	}
	if st.Owner != nil {
		view.Owner = rootOf(st.Owner)
	}
	view.Read = view.Result
	w.addTyped(&view, st)
	if st.Owned == model.OwnershipAny {
		view.OwnedBy, view.CheckOwner = "state.OwnedBy", "state.CheckOwner"
	}
	if !view.ByName && l.name != nil {
		view.Items = "state.Named(selection.Name, list.Items)"
	}
	if len(l.annotations) > 0 {
		view.Items = "state.Annotated(selection.Annotations, " + view.Items + ")"
	}
	w.addVia(&view, st)
	w.addSelection(&view, l)
	view.MayBeNothing = len(view.Via) > 0 || slices.ContainsFunc(view.Guards, func(g guard) bool { return g.Err == nothing })
	if len(view.Via) > 0 {
		w.addThrough(view, l)
	} else {
		w.addWatch(view, l)
	}
	return view
}

// getterDoc describes what the getter of a state returns.
func (w *managerWriter) getterDoc(st *model.State, l lookup) []string {
	what := "the " + st.Kind.Kind
	if st.List {
		what = "every " + st.Kind.Kind
	}
	owns := map[model.Ownership]string{model.OwnershipController: "control", model.OwnershipAny: "own"}[st.Owned]
	if st.List && owns != "" {
		owner := "the " + w.manager.Target.Kind
		if st.Owner != nil {
			owner = "the state " + st.Owner.Name
		}
		what += " that " + owner + " " + owns + "s,"
	}
	sentence := strings.TrimRight(fmt.Sprintf("Get%s returns the state %s: %s %s",
		exported(st.Name), st.Name, what, l.place(w.manager.Target)), " ,")
	var ending string
	switch owner := w.manager.Target.Kind; {
	case st.List:
		ending = "sorted by namespace and name."
	case owns != "":
		ending = "or nil if there is none. One that the " + owner + " does not " + owns + " is an error."
	default:
		ending = "or nil if there is none."
	}
	switch {
	case st.List:
	case !l.byName():
		ending += " More than one is an error."
	case len(st.Labels)+len(l.fields)+len(l.where)+len(l.annotations)+len(l.fieldWhere) > 0:
		ending += " One with the name that does not satisfy the other selectors is an error."
	}
	if st.Optional() {
		ending += " Nothing is selected while a reference with a ? is empty."
	}
	doc := []string{sentence + ", " + ending}
	if selectors := l.selectors(); len(selectors) > 0 {
		doc = []string{sentence + " with", ""}
		for _, selector := range selectors {
			doc = append(doc, "\t"+selector)
		}
		doc = append(doc, "", ending)
	}
	if len(st.Doc) > 0 {
		doc = append(append(doc, ""), st.Doc...)
	}
	return doc
}

// addSelection writes the body of the function that returns what the state selects.
func (w *managerWriter) addSelection(view *stateView, l lookup) {
	var literal selectionLiteral
	if l.each() == nil {
		view.guard(conditionGuards(l))
	}
	switch {
	case l.namespace.Mode == model.TargetNamespace:
		view.InTargetNamespace = true
		literal.namespace = "namespace"
	case l.namespace.Mode == model.NamedNamespace && l.namespace.Value.Elements() == nil:
		literal.namespace = view.require("namespace", *l.namespace.Value)
	}
	switch {
	case l.each() != nil:
		w.addEach(view, l, &literal)
	case l.name != nil:
		literal.name = view.require("name", *l.name)
	}
	for _, label := range l.labels {
		literal.addLabel(label.Key, view.value(label.Value))
	}
	literal.where, literal.annotations = requirementExprs(l.where, view.value), requirementExprs(l.annotations, view.value)
	for _, field := range l.fields {
		index := w.index(l.state.Kind, field)
		literal.addField(index+".Name", view.value(field.Value))
		if l.byName() {
			view.Indexes += ", " + index
		} else {
			w.register(index)
		}
	}
	w.addFieldWhere(view, l, &literal)
	view.Wanted = literal.String()
}

// index returns the variable of the index that a field selector needs, which is declared once for
// each manager.
func (w *managerWriter) index(kind model.Kind, field model.Selector) string {
	view := indexView{
		Name: strconv.Quote(indexName(field, w.manager.Target)),
		Type: w.kind(kind).Type, New: w.kind(kind).New,
	}
	key := view.New + " " + view.Name
	if known := w.indexes[key]; known != "" {
		return known
	}
	view.Var = w.names.scope.take(w.private+exported(kind.Kind)+"By"+camel(strings.TrimPrefix(field.Key, ".metadata")), "Index")
	view.Expr, view.Guards = indexValues(field, w.manager.Target)
	view.Doc = []string{view.Var + " finds " + kind.Kind + " objects by their field " + field.Key + "."}
	if field.ControllerField {
		view.Doc = []string{view.Var + " finds " + kind.Kind + " objects by the name of the " + w.manager.Target.Kind + " that controls them."}
	}
	w.indexes[key] = view.Var
	w.view.Indexes = append(w.view.Indexes, view)
	return view.Var
}

// register makes the manager register an index with the cache.
func (w *managerWriter) register(index string) {
	i := slices.IndexFunc(w.view.Indexes, func(view indexView) bool { return view.Var == index })
	w.view.Indexes[i].Registered = true
}

func (w *managerWriter) addActions() {
	views := map[*model.State]stateView{}
	for i, st := range w.manager.States {
		views[st] = w.view.States[i]
	}
	for _, action := range w.manager.Actions {
		view := actionView{Name: action.Name, Const: constOf(w.manager, action), Doc: action.Doc}
		view.MethodDoc = append([]string{action.Name + " returns the action of that name" + colonIf(action.Doc)}, action.Doc...)
		for _, st := range action.States {
			view.States = append(view.States, views[st])
		}
		w.view.Actions = append(w.view.Actions, view)
	}
}

// addRules adds the RBAC rules that the cache needs to read the target and the states.
func (w *managerWriter) addRules() {
	kinds := []model.Kind{w.manager.Target}
	for _, st := range w.manager.States {
		kinds = append(kinds, st.Kind)
	}
	for _, kind := range kinds {
		names := w.addOnly(kind)
		w.view.Unstructured = w.view.Unstructured || kind.Unstructured()
		rule := ruleOf(kind, names)
		if !slices.Contains(w.view.Rules, rule) {
			w.view.Rules = append(w.view.Rules, rule)
		}
	}
	if len(w.view.Only) > 0 || w.view.Unstructured {
		w.view.Cache = w.names.scope.take("Cache"+exported(w.manager.Name), "Objects")
	}
}

func colonIf(doc []string) string {
	if len(doc) == 0 {
		return "."
	}
	return ":"
}
