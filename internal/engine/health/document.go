// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A document is an object as its JSON has it.
type document struct {
	gk         schema.GroupKind
	gvk        schema.GroupVersionKind
	content    map[string]any // not to be changed: it may be that of a cache
	status     map[string]any // nil if there is none
	generation int64          // 0 if it has none
	conditions []cond
}

// A cond is a condition of any convention.
type cond struct {
	kind, status, reason, message string
	severity                      string // of Cluster API v1beta1
	stale                         bool   // it is about an older generation
}

// newDocument reads an object. The document is usable also with an error, as far as it could be
// read.
func newDocument(obj client.Object, gvk schema.GroupVersionKind) (*document, error) {
	d := &document{gvk: gvk, gk: gvk.GroupKind(), generation: obj.GetGeneration()}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		d.content = u.Object
		// The accessor has 0 for numbers that are not int64, such as those of encoding/json.
		d.generation, _ = d.number("metadata", "generation")
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return d, fmt.Errorf("encoding it: %w", err)
		}
		d.content = content
	}
	switch status := d.content["status"].(type) {
	case nil:
		return d, nil
	case map[string]any:
		if len(status) > 0 {
			d.status = status
		}
	default:
		return d, fmt.Errorf("its status is no object")
	}
	return d, d.readConditions()
}

func (d *document) readConditions() error {
	all, ok := d.status["conditions"].([]any)
	if there := d.status["conditions"]; !ok && there != nil {
		return fmt.Errorf("status.conditions is no list")
	}
	for _, entry := range all {
		fields, ok := entry.(map[string]any)
		if !ok {
			return fmt.Errorf("an entry of status.conditions is no object")
		}
		c := cond{kind: textOf(fields["type"]), status: textOf(fields["status"]), reason: textOf(fields["reason"]),
			message: textOf(fields["message"]), severity: textOf(fields["severity"])}
		if observed, ok := numberOf(fields["observedGeneration"]); ok && observed > 0 {
			c.stale = observed < d.generation
		}
		d.conditions = append(d.conditions, c)
	}
	return nil
}

// behind reports whether the status is about another generation than the spec.
func (d *document) behind() bool {
	observed, ok := d.number("status", "observedGeneration")
	return ok && d.generation > 0 && observed != d.generation
}

// first returns the condition of the first of these types that has the status.
func (d *document) first(types []string, status string) (cond, bool) {
	for _, kind := range types {
		if c, ok := d.condition(kind); ok && c.status == status {
			return c, true
		}
	}
	return cond{}, false
}

// condition returns the condition of a type. There is one of each type, or the document is wrong.
func (d *document) condition(kind string) (cond, bool) {
	for _, c := range d.conditions {
		if c.kind == kind {
			return c, true
		}
	}
	return cond{}, false
}

func (d *document) field(path ...string) any {
	var value any = d.content
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

func (d *document) text(path ...string) string { return textOf(d.field(path...)) }

func (d *document) number(path ...string) (int64, bool) { return numberOf(d.field(path...)) }

func textOf(value any) string {
	text, _ := value.(string)
	return text
}

// numberOf returns an integer, however it was decoded: by the decoders of Kubernetes, by
// encoding/json, by those of YAML, or from a status that has it as text, as Argo Rollouts does.
func numberOf(value any) (int64, bool) {
	switch n := value.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64:
		return int64(n), n == math.Trunc(n) && math.Abs(n) < 1<<53
	case json.Number:
		i, err := n.Int64()
		return i, err == nil
	case string:
		i, err := strconv.ParseInt(n, 10, 64)
		return i, err == nil
	}
	return 0, false
}

func (c cond) reasonOr(other string) string { return cmp.Or(c.reason, other) }

// text is what a condition says.
func (c cond) text() string {
	switch {
	case c.message != "":
		return c.message
	case c.reason != "":
		return c.kind + " is " + c.status + ": " + c.reason
	}
	return c.kind + " is " + c.status
}
