// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/show/explanation"
	"github.com/ctrlkit/ctrlkit/journal"
)

// The annotations of package external, which stands above this one. A test of
// package external compares them.
const (
	IDAnnotation       = "external.ctrlkit.dev/id"
	IntentAnnotation   = "external.ctrlkit.dev/intent"
	OperatorAnnotation = "lifecycle.ctrlkit.dev/operator"
)

// An outsideLine is the resource outside the cluster that an object stands for.
type outsideLine struct {
	ID, System, Owner, Policy string
	State                     State
	Word, Text                string
	// Last is the last change of it that a journal knows, and At when that was.
	Last string
	Bad  bool
	At   time.Time
}

// outsideOf returns the resource outside the cluster of an object, nil if it has none. The system
// is named by the step that calls it.
func outsideOf(obj *unstructured.Unstructured, conditions []metav1.Condition, entries []journal.Entry) *outsideLine {
	line := &outsideLine{}
	called := false
	for _, e := range entries {
		switch ev := e.Event.(type) {
		case journal.Called:
			line.System, called = explanation.OneLine(ev.Step), true
		case journal.Changed:
			line.System, called = explanation.OneLine(ev.Step), true
			line.ID, line.Last, line.At, line.Bad = explanation.OneLine(ev.ID), explanation.OneLine(ev.String()), e.Time, ev.Err != nil
		}
	}
	var annotations map[string]string
	if obj != nil {
		annotations = obj.GetAnnotations()
	}
	if id := annotations[IDAnnotation]; id != "" {
		line.ID = explanation.OneLine(id)
	}
	if line.ID == "" && annotations[IntentAnnotation] == "" && !called {
		return nil
	}
	line.Owner = explanation.OneLine(annotations[OperatorAnnotation])
	line.State, line.Word, line.Text = stateOutside(conditions)
	if line.ID == "" && annotations[IntentAnnotation] != "" {
		line.Word = "being created, its id is not known yet"
	}
	if c := meta.FindStatusCondition(conditions, "Managed"); c != nil {
		line.Policy = explanation.OneLine(c.Reason)
	}
	return line
}

// stateOutside returns the state of a resource from the conditions of package external.
func stateOutside(conditions []metav1.Condition) (state State, word, text string) {
	for _, o := range []struct {
		condition string
		state     State
	}{{"Failed", Failing}, {"Deleting", Deleting}, {"Creating", Waiting}, {"Updating", Waiting}, {"Drifted", Waiting}} {
		if c := meta.FindStatusCondition(conditions, o.condition); c != nil && c.Status == metav1.ConditionTrue {
			return o.state, strings.ToLower(o.condition), explanation.OneLine(c.Message)
		}
	}
	switch c := meta.FindStatusCondition(conditions, "Available"); {
	case c == nil:
		return NotReady, "not known", ""
	case c.Status == metav1.ConditionTrue:
		return Ready, "available", ""
	case c.Reason == "Absent":
		return NotReady, "absent", ""
	default:
		return NotReady, "not available", explanation.OneLine(c.Reason + ": " + c.Message)
	}
}
