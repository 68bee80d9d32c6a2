// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/ast"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/diag"
	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// operator is what a selector asks of a label or an annotation.
type operator selection.Operator

// operatorOf returns the key of a selector without its operator, and the operator: KEY=VALUE,
// KEY!=VALUE, KEY in (VALUE), KEY notin (VALUE), KEY, or !KEY.
func operatorOf(sel *ast.Selector) (key string, op operator) {
	key = sel.Key.Text
	switch {
	case sel.Op.Text != "":
		return key, operator(sel.Op.Text)
	case sel.HasValue && strings.HasSuffix(key, "!"):
		return key[:len(key)-1], operator(selection.NotEquals)
	case sel.HasValue:
		return key, operator(selection.Equals)
	case strings.HasPrefix(key, "!"):
		return key[1:], operator(selection.DoesNotExist)
	}
	return key, operator(selection.Exists)
}

func (o operator) only(operators ...selection.Operator) bool {
	return slices.Contains(operators, selection.Operator(o))
}

// described names the operator as documents have it.
func (o operator) described() string { return fmt.Sprintf("operator %q", string(o)) }

// keyed checks a selector of a label or an annotation.
func (s *stateScope) keyed(sel *ast.Selector, family, key string, op operator) {
	at := strings.LastIndex(sel.Key.Text, key)
	span := ast.Range{Start: sel.Key.Start + at, End: sel.Key.Start + at + len(key)}
	what, name := strings.TrimSuffix(family, "s"), key
	if family == "annotations" {
		name = strings.ToLower(key) // as the API server does
	}
	if len(validation.IsQualifiedName(name)) > 0 {
		s.d.report(diag.BadLabelKey, span, fmt.Sprintf("malformed %s key %q", what, key),
			"write NAME or DOMAIN/NAME with letters, digits, -, _ and ., at most 63 in NAME")
	}
	set := sel.Set
	if sel.HasValue {
		if !s.hasText(sel, fmt.Sprintf(`write %s=VALUE, or =%q for an empty %s`, sel.Key.Text, "", what), false) {
			return
		}
		set = []*ast.Value{&sel.Value}
	}
	out := model.Requirement{Key: key, Operator: string(op), Pos: s.d.position(sel.Key)}
	for _, v := range set {
		if v.Bad {
			return // reported by the scanner
		}
		value, ok := s.value(*v)
		if ok && family == "labels" {
			s.labelValue(*v)
		}
		out.Values = append(out.Values, value)
	}
	s.demand(family+"/"+key, demand{sel, op, set})
	switch {
	case family == "annotations":
		s.withoutIndex(sel)
		s.out.Annotations = append(s.out.Annotations, out)
	case op.only(selection.Equals):
		s.out.Labels = append(s.out.Labels, model.Selector{Key: key, Value: out.Values[0], Pos: out.Pos})
	default:
		s.out.Where = append(s.out.Where, out)
	}
}

// labelValue checks the literal parts of a label's value.
func (s *stateScope) labelValue(v ast.Value) {
	if _, err := labels.NewRequirement("key", selection.In, []string{sample(v)}); err != nil {
		s.d.report(diag.BadLabelValue, literalSpan(v), fmt.Sprintf("malformed label value %s", shown(v)),
			"use at most 63 letters, digits, -, _ and ., with a letter or digit at both ends")
	}
}

// withoutIndex remembers the first selector for which there is no index.
func (s *stateScope) withoutIndex(sel *ast.Selector) {
	if s.unindexed == nil && s.kind != nil {
		s.unindexed = sel
	}
}

// noteCost says what selecting without an index costs. A single object by its name is read by that.
func (s *stateScope) noteCost() {
	if s.unindexed == nil || s.name != nil || s.nameField != nil {
		return
	}
	where := map[model.NamespaceMode]string{model.AllNamespaces: " of all namespaces", model.NoNamespace: ""}
	place, ok := where[s.out.Namespace.Mode]
	if !ok {
		place = " of the namespace"
	}
	which := ""
	if len(s.out.Labels)+len(s.out.Where)+len(s.out.Fields) > 0 {
		which = " that the other selectors find"
	}
	what, hint := "annotations have no index", "select by a label, if you can choose what these objects have"
	if strings.Contains(s.unindexed.Key.Text, "fields/") {
		what, hint = "operators of fields have no index", "select by a label, or by = for each value in a state of its own"
	}
	s.d.report(diag.AnnotationCost, s.unindexed.Key, fmt.Sprintf("%s: each reconcile reads every %s%s%s", what, s.kind.Kind.Kind, place, which), hint)
}
