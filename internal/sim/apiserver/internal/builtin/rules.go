// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

//go:generate env GOWORK=off go -C ../../../../../controlplane/kubernetes run -tags=grpcnotrace ./internal/probe ../../internal/sim/apiserver/internal/builtin

// rulesJSON is what controlplane/kubernetes/internal/probe learned from the validation of the real
// server, one rule per line.
//
//go:embed rules.json
var rulesJSON []byte

// refusedAs is the error with which a rule refuses.
type refusedAs struct {
	Type   field.ErrorType `json:"type"`
	Detail string          `json:"detail"`
}

func (r refusedAs) at(path *field.Path, value any) *field.Error {
	if r.Type == field.ErrorTypeRequired {
		value = ""
	}
	if value == nil && r.Type != field.ErrorTypeForbidden {
		value = ""
	}
	return &field.Error{Type: r.Type, Field: path.String(), BadValue: value, Detail: r.Detail}
}

// bound is an end of a range.
type bound struct {
	Value int64 `json:"value"`
	refusedAs
}

// rule is what a field requires. The zero value of each part requires nothing.
type rule struct {
	Kind     string               `json:"kind"`
	Path     string               `json:"path"`
	Absent   []refusedAs          `json:"absent"`  // if the field is not set
	Empty    []refusedAs          `json:"empty"`   // if it is "", 0, [] or {}
	Up       bool                 `json:"up"`      // whether the error is at the object or list that has the field
	Enum     []string             `json:"enum"`    // the supported values
	EnumAs   *refusedAs           `json:"enumAs"`  // the error for others, where it is not "supported values: ..."
	Prefix   string               `json:"prefix"`  // what a string begins with; else it is refused with EnumAs
	Format   string               `json:"format"`  // the format of a string
	Keys     string               `json:"keys"`    // the format of the keys of a map
	Values   string               `json:"values"`  // the format of its values, or of the text in a number or text
	Min      *bound               `json:"min"`     // of numbers and quantities
	Max      *bound               `json:"max"`     // of numbers
	Unique   *string              `json:"unique"`  // the field by which the elements of a list differ; "" for themselves
	Refused  map[string]refusedAs `json:"refused"` // values that are refused one by one
	Constant *constant            `json:"constant"`

	holds func(at *step) bool // nil: always
}

// constant is the refusal of a change.
type constant struct {
	refusedAs
	Except []string `json:"except"` // the paths that may change, relative to the rule's
}

// node is a field with the rules about it and about the fields in it.
type node struct {
	name      string
	fields    []*node // sorted by name
	element   *node   // of a list
	rule      *rule   // nil if there is none
	constants []*constant
	fixed     bool // whether it or a field in it has constants
}

// ruleBook has the rules of all kinds, as trees.
var ruleBook = sync.OnceValue(func() map[string]*node {
	var rules []*rule
	if err := json.Unmarshal(rulesJSON, &rules); err != nil {
		panic(fmt.Sprintf("rules.json: %v", err))
	}
	book := map[string]*node{}
	for _, r := range rules {
		r.holds = conditionOf(r)
		book[r.Kind] = addRule(book[r.Kind], r.Path, r)
	}
	pod := book["/Pod"].find("spec")
	for kind, path := range templates {
		n := addRule(book[kind], path, nil)
		n.place(path, pod)
		book[kind] = n
	}
	return book
})

// templates are the paths of the Pod specs in other kinds. The rules of Pods hold in them.
var templates = map[string]string{
	"apps/Deployment": "spec.template.spec", "apps/ReplicaSet": "spec.template.spec", "apps/StatefulSet": "spec.template.spec",
	"apps/DaemonSet": "spec.template.spec", "batch/Job": "spec.template.spec", "batch/CronJob": "spec.jobTemplate.spec.template.spec",
}

// steps splits a path: "a.b[].c" has the steps a, b, [] and c.
func steps(path string) []string {
	return strings.FieldsFunc(strings.ReplaceAll(path, "[]", ".[]"), func(r rune) bool { return r == '.' })
}

func addRule(root *node, path string, r *rule) *node {
	if root == nil {
		root = &node{}
	}
	n := root
	for _, step := range steps(path) {
		n = n.descend(step)
		n.fixed = n.fixed || r != nil && r.Constant != nil
	}
	switch {
	case r == nil:
	case r.Constant != nil:
		n.constants = append(n.constants, r.Constant)
	default:
		n.rule = r
	}
	return root
}

// descend returns the node of a step. It makes one if there is none.
func (n *node) descend(step string) *node {
	if step == "[]" {
		if n.element == nil {
			n.element = &node{}
		}
		return n.element
	}
	i, ok := slices.BinarySearchFunc(n.fields, step, func(f *node, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		n.fields = slices.Insert(n.fields, i, &node{name: step})
	}
	return n.fields[i]
}

func (n *node) find(path string) *node {
	for _, step := range steps(path) {
		n = n.descend(step)
	}
	return n
}

// place gives the node of a path the rules of another. The rules about changes are not copied: those
// of Pods do not hold in templates.
func (n *node) place(path string, other *node) {
	at := n.find(path)
	at.fields, at.element = other.fields, other.element
}

// step is a part of a path, linked to what is before it, so that no path is built for what is valid.
type step struct {
	parent *step
	name   string
	index  int    // of an element, if the name is empty
	in     object // which has the field of the name
}

func (s *step) path() *field.Path {
	switch {
	case s == nil:
		return nil
	case s.name == "":
		return s.parent.path().Index(s.index)
	case s.parent == nil:
		return field.NewPath(s.name)
	}
	return s.parent.path().Child(s.name)
}

// checker collects what is refused.
type checker struct{ errs field.ErrorList }

func (c *checker) refuse(as *refusedAs, at *step, value any) {
	c.errs = append(c.errs, as.at(at.path(), value))
}

func (c *checker) refuseAll(list []refusedAs, at *step, value any) {
	for i := range list {
		c.refuse(&list[i], at, value)
	}
}

// checkRules checks a new object by the rules of its kind.
func checkRules(gvk schema.GroupVersionKind, obj object) field.ErrorList {
	n := ruleBook()[id(gvk)]
	if n == nil {
		return nil
	}
	var c checker
	c.object(n, obj, nil)
	return c.errs
}

// object checks the fields of an object.
func (c *checker) object(n *node, o object, at *step) {
	for _, f := range n.fields {
		value, set := o[f.name]
		here := &step{parent: at, name: f.name, in: o}
		if !set || value == nil {
			if f.rule != nil && (f.rule.holds == nil || f.rule.holds(here)) {
				c.refuseAll(f.rule.Absent, here, nil)
			}
			continue
		}
		c.value(f, value, here)
	}
}

// value checks a value that is set.
func (c *checker) value(n *node, value any, at *step) {
	if n.rule != nil && (n.rule.holds == nil || n.rule.holds(at)) && !c.rule(n.rule, value, at) {
		return
	}
	switch v := value.(type) {
	case object:
		c.object(n, v, at)
	case []any:
		if n.element == nil {
			return
		}
		for i, e := range v {
			c.value(n.element, e, &step{parent: at, index: i})
		}
	}
}

// rule checks a value, and reports whether what is in it is to be checked too.
func (c *checker) rule(r *rule, value any, at *step) bool {
	if r.Up {
		at = at.parent
	}
	if len(r.Empty) > 0 && isEmpty(value) {
		c.refuseAll(r.Empty, at, value)
		return false
	}
	switch v := value.(type) {
	case string:
		c.text(r, v, at)
	case int64:
		c.number(r, v, at)
	case bool:
		if as, ok := r.Refused[fmt.Sprint(v)]; ok {
			c.refuse(&as, at, v)
		}
	case []any:
		if r.Unique != nil {
			c.unique(*r.Unique, v, at)
		}
	case object:
		if r.Keys == "" && r.Values == "" {
			break
		}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			c.entry(r, key, v[key], at)
		}
	}
	return true
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case int64:
		return v == 0
	case []any:
		return len(v) == 0
	case object:
		return len(v) == 0
	}
	return false
}
