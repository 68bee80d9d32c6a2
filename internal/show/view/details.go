// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// Details are [Objects] that also know what surrounds one.
type Details interface {
	Children(ctx context.Context, owner *unstructured.Unstructured) []Child
	Events(ctx context.Context, of *unstructured.Unstructured) []Event
}

// A Child is an object that another one owns.
type Child struct {
	Object journal.Object
	State  State
	Text   string
	Events []Event // warnings about it, if it is not ready
	Within []Child // those that it owns
}

// An Event is one of the cluster about an object.
type Event struct {
	At           time.Time
	Warning      bool
	Reason, Text string
	Count        int
}

// A childLine is a child on the page of its owner.
type childLine struct {
	objectLine
	State  State
	Events []Event
	Within []childLine
}

// A managerLine is a client that has written fields of an object.
type managerLine struct {
	Name, Operation, Subresource string
	At                           time.Time
}

// details returns what surrounds an object, as far as that is known.
func (v *viewing) details(obj *unstructured.Unstructured, outside *outsideLine) []block {
	d, ok := v.server.options.Objects.(Details)
	if obj == nil || !ok {
		return treeOf(nil, outside)
	}
	all := treeOf(childLines(d.Children(v.ctx, obj)), outside)
	if events := eventLines(d.Events(v.ctx, obj)); len(events) > 0 {
		all = append(all, render("events", "events", events))
	}
	return all
}

// childLines returns what the page says of children, those that matter most first.
func childLines(children []Child) []childLine {
	all := make([]childLine, 0, len(children))
	for _, c := range children {
		all = append(all, childLine{objectLine{c.Object.String(), explanation.OneLine(c.Text), queryOf(c.Object)}, c.State, eventLines(c.Events), childLines(c.Within)})
	}
	slices.SortStableFunc(all, func(a, b childLine) int { return a.State.rank() - b.State.rank() })
	return all
}

func eventLines(events []Event) []Event {
	for i := range events {
		events[i].Reason, events[i].Text = explanation.OneLine(events[i].Reason), explanation.OneLine(events[i].Text)
	}
	return events
}

// A childrenOf is what belongs to an object: other objects, and a resource outside the cluster.
type childrenOf struct {
	Children []childLine
	Outside  *outsideLine
}

// treeOf draws what belongs to an object, if there is anything.
func treeOf(children []childLine, outside *outsideLine) []block {
	if len(children) == 0 && outside == nil {
		return nil
	}
	return []block{render("children", "children", childrenOf{children, outside})}
}

// managersOf returns who has written an object, the latest first.
func managersOf(obj *unstructured.Unstructured) []managerLine {
	var all []managerLine
	for _, m := range obj.GetManagedFields() {
		line := managerLine{Name: explanation.OneLine(m.Manager), Operation: string(m.Operation), Subresource: m.Subresource}
		if m.Time != nil {
			line.At = m.Time.Time
		}
		if m.Operation == metav1.ManagedFieldsOperationApply {
			line.Operation = "applied"
		} else {
			line.Operation = "updated"
		}
		all = append(all, line)
	}
	slices.SortStableFunc(all, func(a, b managerLine) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Name, b.Name)) })
	return all
}
