// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/cluster/secrets"
	"github.com/ctrlkit/ctrlkit/internal/show/difference"
	"github.com/ctrlkit/ctrlkit/internal/sim/trial"
)

// A Plan is what an operator would do. Its JSON is what "ctrlkit plan -o json" prints.
type Plan struct {
	// AtStart is what the operator does before the change is made: what it would do to the cluster
	// as it is. It is empty if the operator that runs there is idle, and does the same.
	AtStart []Change `json:"atStart"`

	// Changes is what happens because of the change. It is empty if none was given.
	Changes []Change `json:"changes"`

	// Unknown is what the plan does not know, each with the reason. A plan with an entry is
	// incomplete.
	Unknown []string `json:"unknown,omitempty"`

	// Assumptions is what would be wrong with the plan although it is complete.
	Assumptions []string `json:"assumptions,omitempty"`

	// Outside is what the operator has tried to reach outside the cluster.
	Outside []string `json:"outside,omitempty"`

	// Copied is the number of objects that were read, and Requests that of the list requests for
	// them.
	Copied   int `json:"copied"`
	Requests int `json:"requests"`
}

// MarshalJSON writes lists without changes as empty ones, which programs can iterate over.
func (p *Plan) MarshalJSON() ([]byte, error) {
	type plain Plan
	out := plain(*p)
	if out.AtStart == nil {
		out.AtStart = []Change{}
	}
	if out.Changes == nil {
		out.Changes = []Change{}
	}
	return json.Marshal(out)
}

// An Action is what happens to an object.
type Action string

// The actions.
const (
	Create  Action = "create"
	Update  Action = "update"
	Delete  Action = "delete"
	Replace Action = "replace" // it is deleted and created again
	Pending Action = "pending" // it is being deleted, and finalizers hold it
)

// By says who does it.
type By string

// Who changes objects. What others do is assumed: their controllers are played.
const (
	Operator  By = "operator"
	User      By = "user" // the change of the plan, and what the operator does to the same object
	Collector By = "garbage-collector"
	Others    By = "others"
)

// A Change is what happens to one object.
type Change struct {
	Action    Action   `json:"action"`
	By        By       `json:"by"`
	Group     string   `json:"group,omitempty"`
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace,omitempty"`
	Name      string   `json:"name"`
	Owner     string   `json:"owner,omitempty"`  // "Kind/name" of the object at the top of its owners
	Fields    []Field  `json:"fields,omitempty"` // of an update
	Restart   bool     `json:"restart,omitempty"`
	Waits     []string `json:"waits,omitempty"`   // the finalizers that hold it
	Repeats   int      `json:"repeats,omitempty"` // writes to a state that it was in before: again and again
}

// A Field is a field that changes. Values of Secrets are hidden.
type Field struct {
	Path string `json:"path"`
	From any    `json:"from,omitempty"`
	To   any    `json:"to,omitempty"`
}

// String names the object.
func (c Change) String() string {
	if c.Namespace == "" {
		return c.Kind + " " + c.Name
	}
	return c.Kind + " " + c.Namespace + "/" + c.Name
}

// loops is from how many writes to former states an object is said to be written again and again.
const loops = 5

// changesOf returns what has become of the objects of a phase, in the order of their first changes.
// owners finds objects that did not change, and values are those of Secrets.
func changesOf(phase map[key]*history, owners func(uid string) map[string]any, values *secrets.Values) []Change {
	addSecrets(values, phase)
	histories := slices.SortedFunc(maps.Values(phase), func(a, b *history) int { return cmp.Compare(a.order, b.order) })
	var changes []Change
	for _, h := range histories {
		if c, ok := h.change(values); ok {
			c.Owner = top(h, owners)
			changes = append(changes, c)
		}
	}
	return changes
}

// addSecrets adds what Secrets had and have.
func addSecrets(values *secrets.Values, phase map[key]*history) {
	for _, h := range phase {
		for _, content := range []map[string]any{h.first, h.last} {
			if obj := (&unstructured.Unstructured{Object: content}); content != nil {
				values.Keep(obj.GetName(), obj.GetNamespace(), obj.GetKind())
				addSecret(values, obj)
			}
		}
	}
}

func addSecret(values *secrets.Values, obj *unstructured.Unstructured) {
	if secrets.Is(obj) {
		values.Add(obj)
	}
}

func (h *history) change(values *secrets.Values) (Change, bool) {
	content := cmpMap(h.last, h.first)
	obj := &unstructured.Unstructured{Object: content}
	c := Change{Group: h.resource.Group, Kind: obj.GetKind(), Namespace: h.namespace, Name: h.name, By: Others, Repeats: h.repeats}
	switch {
	case h.last == nil && h.collected:
		c.By = Collector
	case h.byUser > 0:
		c.By = User
	case h.byOperator > 0:
		c.By = Operator
	}
	if h.repeats < loops {
		c.Repeats = 0
	}
	switch {
	case h.first == nil && h.last == nil:
		return c, false // it came and went
	case h.first == nil:
		c.Action = Create
	case h.last == nil:
		c.Action = Delete
	case obj.GetDeletionTimestamp() != nil:
		c.Action, c.Waits = Pending, obj.GetFinalizers()
	case h.recreated && uidOf(h.first) != uidOf(h.last):
		c.Action = Replace
	default:
		c.Action = Update
	}
	if c.Action == Update || c.Action == Replace {
		c.Fields = fieldsOf(c, h.first, h.last, values)
	}
	if c.Action == Replace { // like a new object, it has no status that can be compared
		c.Fields = slices.DeleteFunc(c.Fields, func(f Field) bool { return f.Path == "status" || strings.HasPrefix(f.Path, "status.") })
	}
	if c.Action == Update {
		c.Restart = restarts(c)
		return c, len(c.Fields) > 0 || c.Repeats > 0
	}
	return c, true
}

func cmpMap(a, b map[string]any) map[string]any {
	if a != nil {
		return a
	}
	return b
}

func uidOf(content map[string]any) string {
	return string((&unstructured.Unstructured{Object: content}).GetUID())
}

// fieldsOf returns the fields that have changed to more than another time, without values of Secrets.
func fieldsOf(c Change, from, to map[string]any, values *secrets.Values) []Field {
	secret, redact := c.Group == "" && c.Kind == "Secret", values.RedactAny
	if secret {
		redact = values.RedactOfSecret
	}
	var fields []Field
	for _, f := range difference.Of(trial.Essential(from), trial.Essential(to), difference.Options{Keyed: true, Hidden: func(path string) bool {
		return secret && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "stringData") || strings.Contains(path, corev1.LastAppliedConfigAnnotation))
	}}) {
		if isTime(f.From) && isTime(f.To) {
			continue
		}
		fields = append(fields, Field{Path: f.Path, From: redact(f.From), To: redact(f.To)})
	}
	return fields
}

func isTime(value any) bool {
	text, ok := value.(string)
	return value == nil || ok && difference.Moment.MatchString(text)
}

// restarts reports whether an update replaces the Pods of a workload.
func restarts(c Change) bool {
	if c.Group != "apps" || c.Kind != "Deployment" && c.Kind != "StatefulSet" && c.Kind != "DaemonSet" {
		return false
	}
	return slices.ContainsFunc(c.Fields, func(f Field) bool { return strings.HasPrefix(f.Path, "spec.template.") || f.Path == "spec.template" })
}

// top returns the object at the top of the owners of one.
func top(h *history, owners func(uid string) map[string]any) string {
	obj := &unstructured.Unstructured{Object: cmpMap(h.last, h.first)}
	name := ""
	for range 10 { // owner references can form a cycle
		owner := metav1.GetControllerOf(obj)
		if owner == nil {
			break
		}
		name = owner.Kind + "/" + owner.Name
		next := owners(string(owner.UID))
		if next == nil {
			break
		}
		obj = &unstructured.Unstructured{Object: next}
	}
	return name
}

// Counts is how many objects are changed, and how, beside those of the user's change.
type Counts struct{ Create, Update, Delete, Restart, Assumed int }

// Count counts changes.
func Count(changes []Change) Counts {
	var n Counts
	for _, c := range changes {
		switch {
		case c.By == User:
			continue
		case c.By == Others:
			n.Assumed++
			continue
		case c.Action == Create:
			n.Create++
		case c.Action == Delete || c.Action == Pending:
			n.Delete++
		case c.Action == Replace:
			n.Create++
			n.Delete++
		case len(c.Fields) > 0:
			n.Update++
		}
		if c.Restart {
			n.Restart++
		}
	}
	return n
}

// Nothing reports whether nothing would happen, as far as is known.
func (p *Plan) Nothing() bool { return len(p.AtStart)+len(p.Changes) == 0 }

// Incomplete reports whether something is not known.
func (p *Plan) Incomplete() bool { return len(p.Unknown) > 0 }

// Check returns what in a plan a policy forbids. The words of a policy are "no-restart",
// "no-delete", and "no-delete=KIND[,KIND]".
func (p *Plan) Check(policy []string) ([]string, error) {
	var broken []string
	for _, rule := range policy {
		name, kinds, named := strings.Cut(rule, "=")
		if name != "no-restart" && name != "no-delete" || name == "no-restart" && named || named && kinds == "" {
			return nil, fmt.Errorf("--policy %s: must be no-restart, no-delete, or no-delete=KIND,KIND", rule)
		}
		for _, c := range slices.Concat(p.AtStart, p.Changes) {
			deleted := c.Action == Delete || c.Action == Replace || c.Action == Pending
			of := !named || slices.ContainsFunc(strings.Split(kinds, ","), func(kind string) bool { return strings.EqualFold(kind, c.Kind) })
			if c.By != User && (name == "no-restart" && c.Restart || name == "no-delete" && deleted && of) {
				broken = append(broken, rule+": "+c.String())
			}
		}
	}
	return broken, nil
}

// signature is equal for changes that are alike but for the names of their objects and of their
// owners, for times, and for their statuses.
func (c Change) signature() string {
	replace := nameless(c)
	var fields []Field
	for _, f := range c.Fields {
		if !strings.HasPrefix(f.Path, "status.") {
			fields = append(fields, Field{Path: f.Path, From: withTexts(f.From, replace), To: withTexts(f.To, replace)})
		}
	}
	data, err := json.Marshal([]any{c.Action, c.By, c.Group, c.Kind, fields, c.Restart, c.Waits, c.Repeats > 0})
	if err != nil {
		panic(err) // it came from JSON
	}
	return string(data)
}

// nameless returns a function that returns a text without the names of an object and of its owner,
// and without times.
func nameless(c Change) func(text string) string {
	replace := func(text string) string {
		return difference.Moments.ReplaceAllString(strings.ReplaceAll(text, c.Name, "(name)"), "(time)")
	}
	_, owner, owned := strings.Cut(c.Owner, "/")
	if !owned {
		return replace
	}
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(owner) + `\b`)
	return func(text string) string { return word.ReplaceAllString(replace(text), "(owner)") }
}

// withTexts returns a value with other texts.
func withTexts(value any, replace func(string) string) any {
	switch v := value.(type) {
	case string:
		return replace(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, child := range v {
			out[key] = withTexts(child, replace)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, child := range v {
			out[i] = withTexts(child, replace)
		}
		return out
	}
	return value
}
