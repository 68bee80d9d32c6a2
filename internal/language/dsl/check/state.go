// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// stateScope is a state while it is checked.
type stateScope struct {
	*managerScope
	node *ast.State
	kind *kindType // nil when the kind is not known
	out  *model.State
	// seen are the selectors by key; nameField is the one for the field .metadata.name.
	seen                              map[string]*ast.Selector
	name, namespace, owned, nameField *ast.Selector
	unindexed                         *ast.Selector // the first for which there is no index
	// demands are those on labels and annotations, by family and key, of which some contradict others.
	demands      map[string][]demand
	contradicted map[string]bool
	// each is true while a value may refer to the elements of a list, which is then list.
	each bool
	list []model.Step
	// needed is true while a value is checked that must not be empty, and has references only.
	needed bool
	// family is the selector whose value is checked, if that is kind, group, or namespace; inDefault
	// is true while the value is that of an empty reference. defaults are those values by reference.
	family    string
	inDefault bool
	owner     *declaredState // that of owned=${STATE}
	defaults  map[string]string
}

// state checks the declaration of a state with all of its selectors.
func (m *managerScope) state(n *ast.State) *declaredState {
	s := &stateScope{
		managerScope: m,
		node:         n,
		kind:         m.kind(m.d, n.Kind),
		seen:         map[string]*ast.Selector{},
		demands:      map[string][]demand{},
		contradicted: map[string]bool{},
		defaults:     map[string]string{},
		out: &model.State{
			Name: n.Name.Text, Doc: docLines(n.Doc), List: n.List, Pos: m.d.position(n.Name),
			Namespace: model.Namespace{Mode: model.TargetNamespace},
		},
	}
	if s.kind != nil {
		s.out.Kind = s.kind.Kind
	}
	for sel := range ast.All[*ast.Selector](n) {
		s.selector(sel)
	}
	switch {
	case s.kind == nil:
	case n.List:
		s.needsList(s.kind, n.Kind, "to be listed")
	case s.name == nil:
		s.needsList(s.kind, n.Kind, "to be selected without a name")
	}
	s.combination()
	s.scope()
	checkOwner(s)
	s.noteCost()
	s.noteLeftOut()
	return &declaredState{model: s.out, kind: s.kind, name: n.Name}
}

// combination checks the selectors of a state against each other.
func (s *stateScope) combination() {
	if selectors := slices.Collect(ast.All[*ast.Selector](s.node)); !s.node.List && !slices.ContainsFunc(selectors, saysWhich) {
		s.d.report(diag.NoSelector, s.node.Name, fmt.Sprintf("no selector says which object %s is", s.node.Name.Text),
			"add name=, labels/KEY= or fields/PATH=, or make it a list: []"+s.node.Kind.Text)
	}
	if s.name != nil && s.nameField != nil {
		s.d.report(diag.Contradiction, s.nameField.Key, "the name is selected twice, by name= and by the field .metadata.name", "keep name=",
			s.d.related(s.name, "the other one"))
	}
	if s.list != nil && namesNoElements(s.name, s.out) {
		s.d.report(diag.BadElements, s.node.Name, "the elements of the list have no name", "add name= with a reference to the name in each element")
	}
}

// scope checks namespaces, cluster-scoped kinds, and owners.
func (s *stateScope) scope() {
	if s.kind == nil {
		return
	}
	if !s.kind.Namespaced {
		s.clusterScoped()
		return
	}
	if s.target == nil {
		return
	}
	switch mode := s.out.Namespace.Mode; {
	case !s.target.Namespaced && s.namespace == nil:
		s.d.report(diag.NamespaceNeeded, s.node.Name,
			fmt.Sprintf("%s is namespaced, but the target %s is not: the state needs a namespace", s.kind.Kind.Kind, s.target.Kind.Kind),
			"add namespace=NAME, or namespace=* for all")
	case s.owned != nil && s.target.Namespaced && s.namespace != nil && !s.isTargetNamespace() && mode != model.TargetNamespace:
		s.d.report(diag.OwnedElsewhere, s.namespace,
			"an owner reference does not cross namespaces: what the target owns is in its own namespace", s.elsewhereHint(),
			s.d.related(s.owned, "owned is here"))
	}
	if s.out.Namespace.Mode == model.AllNamespaces && s.list != nil {
		s.d.report(diag.NameInAllNamespaces, s.namespace, "an object cannot be read by name from all namespaces", "say which namespace")
	}
	if s.out.Namespace.Mode == model.AllNamespaces && s.name != nil && !s.node.List {
		s.d.report(diag.NameInAllNamespaces, s.namespace,
			"an object cannot be read by name from all namespaces",
			"say which namespace, select by fields/.metadata.name=, or make it a list: []"+s.node.Kind.Text)
	}
}

// elsewhereHint is the hint for an owned state in another namespace. A target that is not a
// built-in kind counts as namespaced when it has no marker, so the marker may be missing.
func (s *stateScope) elsewhereHint() string {
	if lookupBuiltin(s.target.Package) != nil {
		return "remove owned or namespace="
	}
	return fmt.Sprintf("remove owned or namespace=; if %s is cluster-scoped, give its Go type the marker %s",
		s.target.Kind.Kind, clusterMarker)
}

func (s *stateScope) clusterScoped() {
	s.out.Namespace = model.Namespace{Mode: model.NoNamespace}
	if s.namespace != nil {
		s.d.report(diag.NamespaceOfClusterScoped, s.namespace,
			fmt.Sprintf("%s is cluster-scoped: its objects have no namespace", s.kind.Kind.Kind), "remove it")
	}
	if s.target == nil || !s.target.Namespaced {
		return
	}
	by := s.owned
	for i := range s.out.Fields {
		if by == nil && s.out.Fields[i].ControllerField {
			by = s.seen["fields/"+s.out.Fields[i].Key]
		}
	}
	if by != nil {
		s.d.report(diag.OwnedClusterScoped, by.Key,
			fmt.Sprintf("%s is cluster-scoped and cannot be owned by the namespaced %s", s.kind.Kind.Kind, s.target.Kind.Kind),
			"select by labels, and delete such objects by a finalizer")
	}
}

// isTargetNamespace reports whether the namespace selector names the namespace of the target, which
// is the default.
func (s *stateScope) isTargetNamespace() bool {
	v := s.out.Namespace.Value
	if v == nil || len(v.Parts) != 1 || v.Parts[0].Ref == nil {
		return false
	}
	return v.Parts[0].Ref.State == nil && isNamespace(v.Parts[0].Ref.Path)
}

// selectorForms are the selectors as hints write them.
const selectorForms = "the selectors are name=, namespace=, kind=, group=, labels/KEY=, fields/PATH=, annotations/KEY=, owned, owned=any and owned=${STATE}"

// families are how selectors begin.
var families = []string{"name", "namespace", "kind", "group", "owned", "labels", "fields", "annotations"}

func (s *stateScope) selector(sel *ast.Selector) {
	text, op := operatorOf(sel)
	family, key, slash := strings.Cut(text, "/")
	switch keyed := family == "labels" || family == "annotations"; {
	case op.only(selection.In, selection.NotIn, selection.NotEquals, selection.DoesNotExist) && !keyed && family != "fields" && slices.Contains(families, family):
		s.d.report(diag.BadOperator, sel, fmt.Sprintf("%s has no %s", family, op.described()), "only labels/KEY, annotations/KEY and fields/PATH have operators")
	case !slash && (family == "kind" || family == "group"):
		if s.unique(sel) {
			s.condition(sel, family)
		}
	case !slash && (family == "name" || family == "namespace"):
		if s.unique(sel) {
			s.placed(sel, family)
		}
	case !slash && family == "owned":
		s.ownedSelector(sel)
	case keyed && key != "":
		if s.unique(sel) {
			s.keyed(sel, family, key, op)
		}
	case family == "fields" && key != "":
		if s.unique(sel) {
			s.field(sel, key, op)
		}
	case keyed || family == "fields":
		example := map[string]string{"labels": "labels/app=web", "annotations": "annotations/example.com/team=web", "fields": "fields/.spec.nodeName=a"}[family]
		s.d.report(diag.MissingKey, sel.Key, fmt.Sprintf("%s without a key", family), "write "+family+"/KEY=VALUE, as in "+example)
	default:
		s.unknownSelector(sel, family, key, slash)
	}
}

func (s *stateScope) unknownSelector(sel *ast.Selector, family, key string, slash bool) {
	span, name, hint := sel.Key.Span(), sel.Key.Text, selectorForms
	known := families
	if slash {
		known = []string{"labels", "fields", "annotations"}
		span.End = min(span.Start+len(family), span.End)
		name = family
	}
	if near, ok := printable.Near(family, known); ok {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	if after, ok := strings.CutPrefix(sel.Key.Text, "labels."); ok && after != "" {
		hint = fmt.Sprintf("did you mean %q?", "labels/"+after)
	}
	if strings.HasPrefix(sel.Key.Text, ".") {
		hint = fmt.Sprintf("did you mean %q?", "fields/"+sel.Key.Text)
	}
	if slash && slices.Contains(families[:5], family) {
		hint = fmt.Sprintf("%s has no key", family)
	}
	s.d.report(diag.UnknownSelector, span, fmt.Sprintf("unknown selector %q", name), hint)
}

// unique reports whether the selector is the first one with its key, and adds a diagnostic if it is
// not.
func (s *stateScope) unique(sel *ast.Selector) bool {
	key := strings.TrimSpace(sel.Key.Text + " " + sel.Op.Text)
	first, ok := s.seen[key]
	if ok {
		s.d.report(diag.DuplicateSelector, sel.Key, fmt.Sprintf("selector %s is given twice", key), "remove one of them",
			s.d.related(first, "first given here"))
		return false
	}
	s.seen[key] = sel
	return true
}

func (s *stateScope) ownedSelector(sel *ast.Selector) {
	s.owned = sel
	ownership := model.OwnershipController
	switch v := sel.Value; {
	case !sel.HasValue:
	case !v.Quoted && len(v.Parts) == 1 && v.Parts[0].Text == "any":
		ownership = model.OwnershipAny
	case len(v.Parts) == 1 && v.Parts[0].Ref != nil && len(v.Parts[0].Ref.Path) == 1 && !v.Parts[0].Ref.Optional && v.Parts[0].Ref.Name() != "target":
		s.owner = (&referenceScope{s, v.Parts[0].Ref}).referredTo()
		s.owned = nil // what follows is about owners that are the target
	default:
		s.d.report(diag.UnwantedValue, ast.Range{Start: sel.Key.End, End: sel.End}, "owned takes no value but any and a state",
			"write owned alone for objects that the target controls, owned=any for every owner reference, or owned=${STATE} for what another object controls")
	}
	if s.unique(sel) {
		s.out.Owned = ownership
	}
}

// placed checks the selectors name and namespace.
func (s *stateScope) placed(sel *ast.Selector, family string) {
	if family == "name" {
		s.name = sel
	} else {
		s.namespace = sel
	}
	if !s.hasText(sel, fmt.Sprintf("write %s=VALUE", family), true) {
		return
	}
	if v := sel.Value; family == "namespace" && !v.Quoted && len(v.Parts) == 1 && v.Parts[0].Text == "*" {
		s.out.Namespace = model.Namespace{Mode: model.AllNamespaces}
		return
	}
	value, ok := s.mayBeOfElements(sel.Value, family)
	if family == "name" {
		if ok {
			s.objectName(sel.Value)
		}
		s.out.ObjectName = &value
		return
	}
	if ok {
		s.namespaceName(sel.Value)
	}
	s.out.Namespace = model.Namespace{Mode: model.NamedNamespace, Value: &value}
	if s.isTargetNamespace() {
		s.out.Namespace = model.Namespace{Mode: model.TargetNamespace}
	}
}

// hasText reports whether the selector has a value, and adds a diagnostic if it has none. If needed
// is true, the value must not be empty.
func (s *stateScope) hasText(sel *ast.Selector, hint string, needed bool) bool {
	if sel.Value.Bad {
		return false // reported by the scanner
	}
	if !sel.HasValue || len(sel.Value.Parts) == 0 && !sel.Value.Quoted {
		span := sel.Key.Span()
		if sel.HasValue {
			span.Start, span.End = sel.End, sel.End
		}
		s.d.report(diag.MissingValue, span, fmt.Sprintf("%s has no value", sel.Key.Text), hint)
		return false
	}
	if needed && len(sel.Value.Parts) == 0 {
		s.d.report(diag.MissingValue, sel.Value, fmt.Sprintf("%s is empty", sel.Key.Text), hint)
		return false
	}
	return true
}

// objectName checks the literal parts of an object's name.
func (s *stateScope) objectName(v ast.Value) {
	text := sample(v)
	if s.kind != nil && s.kind.Group == "rbac.authorization.k8s.io" {
		if len(content.IsPathSegmentName(text)) > 0 {
			s.d.report(diag.BadObjectName, literalSpan(v), fmt.Sprintf("malformed object name %s", shown(v)), "names of this kind are neither . nor .. and have no / or %")
		}
		return
	}
	if len(validation.IsDNS1123Subdomain(text)) > 0 {
		s.d.report(diag.BadObjectName, literalSpan(v), fmt.Sprintf("malformed object name %s", shown(v)), nameHint(v, "use lower-case letters, digits, - and ., with a letter or digit at both ends"))
	}
}

func (s *stateScope) namespaceName(v ast.Value) {
	if len(validation.IsDNS1123Label(sample(v))) == 0 {
		return
	}
	hint := nameHint(v, "use at most 63 lower-case letters, digits and -, with a letter or digit at both ends")
	if v.Quoted && sample(v) == "*" {
		hint = "write namespace=* without quotes for all namespaces"
	}
	s.d.report(diag.BadNamespace, literalSpan(v), fmt.Sprintf("malformed namespace %s", shown(v)), hint)
}

// nameHint suggests the name in lower case and without underscores, if that is a good name.
func nameHint(v ast.Value, rule string) string {
	lower := strings.ReplaceAll(strings.ToLower(sample(v)), "_", "-")
	if len(v.Parts) == 1 && v.Parts[0].Ref == nil && len(validation.IsDNS1123Label(lower)) == 0 {
		return "write " + lower
	}
	return rule
}

// sample returns the value with a letter in place of each reference, to check the literal parts.
func sample(v ast.Value) string {
	var b strings.Builder
	for _, p := range v.Parts {
		if p.Ref != nil {
			b.WriteByte('a')
		} else {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// shown returns the value for a message.
func shown(v ast.Value) string {
	var b strings.Builder
	for _, p := range v.Parts {
		if p.Ref != nil {
			b.WriteString(p.Ref.String())
		} else {
			b.WriteString(p.Text)
		}
	}
	return strconv.Quote(b.String())
}

// literalSpan returns the range to underline when literal text is wrong: that of the text if there
// is just one piece of it, and otherwise that of the value.
func literalSpan(v ast.Value) ast.Range {
	var spans []ast.Range
	for _, p := range v.Parts {
		if p.Ref == nil {
			spans = append(spans, p.Span())
		}
	}
	if len(spans) == 1 {
		return spans[0]
	}
	return v.Span()
}

// value returns the value with its references resolved, and reports whether all of them are good.
func (s *stateScope) value(v ast.Value) (model.Value, bool) {
	var out model.Value
	good := true
	for _, p := range v.Parts {
		if p.Ref == nil {
			out.Parts = append(out.Parts, model.Part{Literal: p.Text})
			continue
		}
		ref := s.reference(p.Ref)
		good = good && ref != nil
		if ref != nil {
			out.Parts = append(out.Parts, model.Part{Ref: ref})
		}
	}
	if len(out.Parts) == 0 {
		out.Parts = []model.Part{{}} // the empty text
	}
	return out, good
}
