// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ctrlkit/ctrlkit/internal/language/dsl/model"
)

// A lookup is how a state is read. It selects the same objects as the state, with as few indexes as
// possible.
type lookup struct {
	state     *model.State
	namespace model.Namespace
	name      *model.Value
	labels    []model.Selector
	fields    []model.Selector
	// conditions are those on the kind and group that something else has.
	conditions []model.Selector
	// where and annotations are the requirements of the state.
	where, annotations []model.Requirement
	fieldWhere         []model.FieldRequirement
}

const fieldName, fieldNamespace = ".metadata.name", ".metadata.namespace"

// newLookup replaces fields that need no index.
//
//   - The field .metadata.namespace becomes the namespace of a state in all namespaces.
//   - The field .metadata.name becomes the name of a state in a known namespace.
//   - Conversely, a name in all namespaces becomes a field: that needs an index.
func newLookup(st *model.State) lookup {
	l := lookup{state: st, namespace: st.Namespace, name: st.ObjectName, labels: st.Labels, fields: slices.Clone(st.Fields),
		conditions: st.Conditions, where: st.Where, annotations: st.Annotations, fieldWhere: st.FieldWhere}
	if l.namespace.Mode == model.AllNamespaces {
		if value := l.takeField(fieldNamespace); value != nil {
			l.namespace = model.Namespace{Mode: model.NamedNamespace, Value: value}
		}
	}
	switch everywhere := l.namespace.Mode == model.AllNamespaces; {
	case !everywhere && l.name == nil:
		l.name = l.takeField(fieldName)
	case everywhere && l.name != nil && !slices.ContainsFunc(l.fields, isField(fieldName)):
		l.fields = append(l.fields, model.Selector{Key: fieldName, Value: *l.name})
		l.name = nil
	}
	return l
}

func isField(key string) func(model.Selector) bool {
	return func(selector model.Selector) bool { return selector.Key == key }
}

// takeField removes the selector of a field, and returns its value, nil if there is none.
func (l *lookup) takeField(key string) *model.Value {
	i := slices.IndexFunc(l.fields, isField(key))
	if i < 0 {
		return nil
	}
	value := l.fields[i].Value
	l.fields = slices.Delete(l.fields, i, i+1)
	return &value
}

// byName reports whether the state is read as one object by its name, rather than as a list.
func (l lookup) byName() bool {
	return l.name != nil && l.namespace.Mode != model.AllNamespaces
}

// each returns the path to the list that has a name of an object in each element, nil if the state
// has no such name.
func (l lookup) each() []model.Step {
	if l.name == nil || !l.state.List {
		return nil
	}
	return l.name.Elements()
}

// hasNamespace reports whether the state selects objects in one namespace.
func (l lookup) hasNamespace() bool {
	return l.namespace.Mode == model.TargetNamespace || l.namespace.Mode == model.NamedNamespace
}

// selectors returns the selectors as they are in a document.
func (l lookup) selectors() []string {
	st := l.state
	var lines []string
	if st.ObjectName != nil {
		lines = append(lines, "name="+valueText(*st.ObjectName))
	}
	for _, condition := range st.Conditions {
		lines = append(lines, condition.Key+"="+valueText(condition.Value))
	}
	for _, label := range st.Labels {
		lines = append(lines, "labels/"+label.Key+"="+valueText(label.Value))
	}
	for _, field := range st.Fields {
		lines = append(lines, "fields/"+field.Key+"="+valueText(field.Value))
	}
	return slices.Concat(lines, requirementTexts("labels/", st.Where), requirementTexts("fields/", fieldRequirements(st.FieldWhere, fieldKey)),
		requirementTexts("annotations/", st.Annotations))
}

func fieldKey(field model.Selector) string { return field.Key }

// fieldRequirements returns the requirements on fields with other names of these.
func fieldRequirements(requirements []model.FieldRequirement, name func(model.Selector) string) []model.Requirement {
	var all []model.Requirement
	for _, r := range requirements {
		all = append(all, model.Requirement{Key: name(r.Field), Operator: r.Operator, Values: r.Values})
	}
	return all
}

// place returns where the objects of the state are, for a comment.
func (l lookup) place(target model.Kind) string {
	switch l.state.Namespace.Mode {
	case model.TargetNamespace:
		return "in the namespace of the " + target.Kind
	case model.NamedNamespace:
		return "in the namespace " + valueText(*l.state.Namespace.Value)
	case model.AllNamespaces:
		return "in all namespaces"
	default:
		return ""
	}
}

// definition describes which objects are selected: two states of managers of one target type with
// the same definition select the same objects. It is the name of the index of the targets.
func (l lookup) definition(targetKind model.Kind) string {
	kind := l.state.Kind
	words := []string{strings.TrimPrefix(kind.Group+"/"+kind.Version, "/") + "/" + kind.Kind}
	switch l.namespace.Mode {
	case model.TargetNamespace:
		words = append(words, "namespace=${target.Namespace}")
	case model.NamedNamespace:
		words = append(words, "namespace="+valueText(*l.namespace.Value))
	}
	if l.name != nil {
		words = append(words, "name="+valueText(*l.name))
	}
	for _, condition := range l.conditions {
		words = append(words, condition.Key+"="+valueText(condition.Value))
	}
	labels := make([]string, 0, len(l.labels))
	for _, label := range l.labels {
		labels = append(labels, "labels/"+label.Key+"="+valueText(label.Value))
	}
	slices.Sort(labels)
	fields := make([]string, 0, len(l.fields))
	for _, field := range l.fields {
		fields = append(fields, "fields/"+indexName(field, targetKind)+"="+valueText(field.Value))
	}
	slices.Sort(fields)
	where, annotations := requirementTexts("labels/", l.where), requirementTexts("annotations/", l.annotations)
	fieldWhere := requirementTexts("fields/", fieldRequirements(l.fieldWhere, func(field model.Selector) string { return indexName(field, targetKind) }))
	slices.Sort(where)
	slices.Sort(annotations)
	slices.Sort(fieldWhere)
	return "ctrlkit:" + strings.Join(slices.Concat(words, labels, fields, where, fieldWhere, annotations), " ")
}

// requirementTexts returns requirements as they are in a document.
func requirementTexts(family string, requirements []model.Requirement) []string {
	var texts []string
	for _, r := range requirements {
		values := make([]string, len(r.Values))
		for i, value := range r.Values {
			values[i] = valueText(value)
		}
		key, text := family+r.Key, strings.Join(values, ", ")
		switch r.Operator {
		case "in", "notin":
			text = key + " " + r.Operator + " (" + text + ")"
		case "exists":
			text = key
		case "!":
			text = "!" + key
		default:
			text = key + r.Operator + text
		}
		texts = append(texts, text)
	}
	return texts
}

// nameDefinition is the definition for state.NameIndex, which uses the namespace and the name. It
// includes another selector only if that decides whether the target selects anything: if it refers
// to what may be nil.
func (l lookup) nameDefinition(targetKind model.Kind) string {
	certain := func(selector model.Selector) bool {
		_, guards := valueExpr(selector.Value)
		return isCertain(guards)
	}
	l.labels = slices.DeleteFunc(slices.Clone(l.labels), certain)
	l.fields = slices.DeleteFunc(slices.Clone(l.fields), certain)
	always := func(r model.Requirement) bool {
		return !slices.ContainsFunc(r.Values, func(value model.Value) bool { return !certain(model.Selector{Value: value}) })
	}
	l.where = slices.DeleteFunc(slices.Clone(l.where), always)
	l.annotations = slices.DeleteFunc(slices.Clone(l.annotations), always)
	l.fieldWhere = slices.DeleteFunc(slices.Clone(l.fieldWhere), func(r model.FieldRequirement) bool { return always(model.Requirement{Values: r.Values}) })
	definition := l.definition(targetKind)
	if len(l.labels)+len(l.fields)+len(l.where)+len(l.annotations)+len(l.fieldWhere) > 0 {
		definition += " (by name)"
	}
	return definition
}

// indexName returns the name of the index for a field. See state.Index for such names.
func indexName(field model.Selector, target model.Kind) string {
	if field.ControllerField {
		return "ctrlkit:" + field.Key + "/" + strings.TrimSuffix(target.Kind+"."+target.Group, ".")
	}
	return "ctrlkit:" + field.Key
}

// indexValues returns the Go that computes the values of a field's index from obj, and its guards.
func indexValues(field model.Selector, target model.Kind) (expr string, guards []guard) {
	switch {
	case field.ControllerField:
		return fmt.Sprintf("state.ControllerName(obj, %q, %q)", target.Group, target.Kind), nil
	case field.Key == fieldName:
		return "[]string{obj.GetName()}", nil
	case field.Key == fieldNamespace:
		return "[]string{obj.GetNamespace()}", nil
	}
	expr, guards = pathExpr("obj", field.Path, field.Text)
	return "[]string{" + expr + "}", guards
}
