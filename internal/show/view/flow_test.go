// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit/internal/engine/outline"
	"github.com/ctrlkit/ctrlkit/journal"
)

type describer outline.Node

func (d describer) Describe() outline.Node { return outline.Node(d) }

func named(label string) outline.Node { return outline.Node{Kind: outline.KindAction, Label: label} }

// shop is a workflow with a graph, of which one action waits for another one.
var shop = describer{Kind: outline.KindSequential, Children: []outline.Node{
	named("ListJobs"),
	{Kind: outline.KindGraph, Children: []outline.Node{named("Volume"), {Kind: outline.KindSequential, Children: []outline.Node{named("Pods"), named("Scale")}}}, After: [][]int{nil, {0}}},
}}

// ran notes a reconcile of an object with that workflow: one action passes, one fails or is done,
// and the rest is blocked, or done.
func (w *world) ran(name string, err error) {
	outcome, result := journal.Outcome{}, journal.ResultDone
	if err != nil {
		outcome, result = journal.Outcome{Err: err, Class: "Quota"}, journal.ResultFailed
	}
	events := []journal.Event{
		journal.WorkflowBegan{Step: "Run", Workflow: shop},
		journal.ActionBegan{Step: "Run", Action: "ListJobs"}, journal.ActionEnded{Step: "Run", Action: "ListJobs"},
		journal.ActionBegan{Step: "Run", Action: "Volume"}, journal.ActionEnded{Step: "Run", Action: "Volume", Outcome: outcome},
	}
	if err != nil {
		events = append(events, journal.ActionBlocked{Step: "Run", Action: shop.Children[1].Children[1].String(), By: []string{"Volume"}})
	}
	events = append(events, journal.ConditionChanged{Type: "Ready", Status: "False", Reason: "Quota"}, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo, Outcome: outcome})
	w.reconcile(database(name), journal.Cause{Kind: journal.CauseStart}, result, events...)
}

const ofA = "object?group=example.com&kind=Database&namespace=shop&name=a"

// The page of an object draws its workflow, with what became of each action, also of those in a
// part that is blocked, and follows the next reconcile.
func TestPicture(t *testing.T) {
	w := newWorld(t)
	w.put("a", "Quota", "3 of 10")
	w.ran("a", errors.New("<b>quota</b> exceeded"))
	page := w.get(ofA)
	_, svg, _ := strings.Cut(page, `<div class="scroll flow"`)
	svg, _, _ = strings.Cut(svg, "</svg>")
	for text, n := range map[string]int{"ListJobs": 1, "✗ failed: &lt;b&gt;quota&lt;/b&gt;": 1, "⊘": 0, "· blocked by Volume": 2, ">Pods<": 1, "<style": 0, "<b>": 0, `class="node bad"`: 1, `class="node blocked"`: 2} {
		if got := strings.Count(svg, text); text != "ListJobs" && got != n || got < n {
			t.Errorf("%q is %d times in the picture, want %d:\n%s", text, got, n, svg)
		}
	}
	c := w.follow(t, ofA+"&stream=1")
	c.until("node bad", true)
	w.ran("a", nil)
	c.until("node bad", false)
}

// A workflow whose actions are not those of the object is not drawn.
func TestPictureOfAnotherShape(t *testing.T) {
	w := newWorld(t)
	w.put("a", "", "")
	w.reconcile(database("a"), journal.Cause{Kind: journal.CauseStart}, journal.ResultDone,
		journal.WorkflowBegan{Step: "Run", Workflow: describer(named("Other"))}, journal.ActionEnded{Step: "Run", Action: "Mine"}, journal.StepEnded{Step: "Run", Phase: journal.PhaseDo})
	if page := w.get(ofA); strings.Contains(page, "Other") || !strings.Contains(page, "Mine") {
		t.Errorf("the page draws the workflow of another object:\n%s", page)
	}
}

// A workflow is described once for each step without a viewer.
func TestWorkflowsAreDescribedForViewers(t *testing.T) {
	a, counted := NewActivity(), &counting{}
	entry := journal.Entry{Controller: "database", Object: database("a"), Event: journal.WorkflowBegan{Step: "Run", Workflow: counted}}
	for range 3 {
		a.Observe(t.Context(), entry)
	}
	if counted.times != 1 {
		t.Errorf("described %d times without a viewer", counted.times)
	}
	a.table.Store(newTable())
	a.Observe(t.Context(), entry)
	if counted.times != 2 || len(a.workflows[workflowKey{"database", "Run"}]) != 1 {
		t.Errorf("described %d times, %d shapes", counted.times, len(a.workflows))
	}
}

type counting struct{ times int }

func (c *counting) Describe() outline.Node { c.times++; return outline.Node(shop) }

// The conditions are drawn over time, and the resource outside the cluster is in the tree, without
// what the object has of values.
func TestHistoryAndOutside(t *testing.T) {
	w := newWorld(t)
	w.put("a", "", "")
	obj := w.objects[types.NamespacedName{Namespace: "shop", Name: "a"}]
	obj.SetAnnotations(map[string]string{IDAnnotation: "db-7", OperatorAnnotation: "blue", "password": "canary-of-an-annotation"})
	obj.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}, map[string]any{"type": "Available", "status": "True", "reason": "Available"},
		map[string]any{"type": "Drifted", "status": "True", "reason": "Drifted", "message": ".size"}, map[string]any{"type": "Managed", "status": "True", "reason": "Full"},
	}}
	w.ran("a", errors.New("quota"))
	w.reconcile(database("a"), journal.Cause{Kind: journal.CauseStart}, journal.ResultDone,
		journal.Changed{Step: "Base", Verb: "create", ID: "db-7", After: journal.Seen{Settings: map[string]string{"password": "canary-of-a-setting"}}},
		journal.ConditionChanged{Type: "Ready", Status: "True", Reason: "Ready"}, journal.StepEnded{Step: "Base", Phase: journal.PhaseDo})
	page := w.get(ofA)
	for _, want := range []string{"Conditions over time", "False Quota", "True Ready", "<strong>db-7</strong>", "called by step Base", "drifted", ".size", "operator blue", "Full", "create of the resource db-7"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if strings.Contains(page, "canary") {
		t.Errorf("the page has a value:\n%s", page)
	}
	w.put("a", "", "")
	if page := w.get("object?group=example.com&kind=Database&namespace=shop&name=b"); strings.Contains(page, "outside the cluster") {
		t.Errorf("an object without a resource has one:\n%s", page)
	}
}

// Each condition that has changed has its strip, also those that only a failure brings.
func TestHistoryOfEachCondition(t *testing.T) {
	w := newWorld(t)
	w.put("a", "Quota", refused)
	obj := w.objects[types.NamespacedName{Namespace: "shop", Name: "a"}]
	obj.Object["status"] = map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "reason": "Quota"}, map[string]any{"type": "Stalled", "status": "True", "reason": "Quota"},
		map[string]any{"type": "PartsReady", "status": "False", "reason": "Quota"}, map[string]any{"type": "Constant", "status": "True", "reason": "Always"},
	}}
	w.reconcile(database("a"), journal.Cause{Kind: journal.CauseStart}, journal.ResultDone, journal.ConditionChanged{Type: "PartsReady", Status: "True", Reason: "Ready"})
	time.Sleep(time.Millisecond)
	w.reconcile(database("a"), journal.Cause{Kind: journal.CauseStart}, journal.ResultStalled, journal.ConditionChanged{Type: "Ready", Status: "False", Reason: "Quota"},
		journal.ConditionChanged{Type: "Stalled", Status: "True", Reason: "Quota"}, journal.ConditionChanged{Type: "PartsReady", Status: "False", Reason: "Quota"})
	_, strips, _ := strings.Cut(w.get(ofA), "Conditions over time")
	strips, _, _ = strings.Cut(strips, "</section>")
	for name, want := range map[string]bool{"Ready": true, "Stalled": true, "PartsReady": true, "Constant": false} {
		if got := strings.Contains(strips, `<span class="name">`+name+`</span>`); got != want {
			t.Errorf("%s has a strip: %t, want %t:\n%s", name, got, want, strips)
		}
	}
}
