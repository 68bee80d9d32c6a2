// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ctrlkit/ctrlkit/internal/cluster/printable"
	"github.com/ctrlkit/ctrlkit/internal/show/difference"
)

// A State is what people see of an object: its deletion, its conditions, and without any of these
// its status. Times and messages are not in it.
type State struct {
	Gone       bool
	Deleted    bool
	Finalizers []string // that hold an object that is deleted
	Behind     bool     // its present spec was not observed
	Conditions []string // "Ready=False (Reason)"
	Status     string   // of an object without conditions
	well       bool
}

// StateOf returns the state of an object, which is nil if the object is gone.
func StateOf(obj *unstructured.Unstructured) State {
	if obj == nil {
		return State{Gone: true}
	}
	s := State{Deleted: obj.GetDeletionTimestamp() != nil}
	if s.Deleted {
		s.Finalizers = slices.Sorted(slices.Values(obj.GetFinalizers()))
	}
	status, _ := obj.Object["status"].(map[string]any)
	if observed, ok := status["observedGeneration"].(int64); ok {
		s.Behind = observed < obj.GetGeneration()
	}
	conditions, _ := status["conditions"].([]any)
	bad := false
	for _, c := range conditions {
		condition, _ := c.(map[string]any)
		kind, is, reason := textOf(condition, "type"), textOf(condition, "status"), textOf(condition, "reason")
		text := kind + "=" + is
		if reason != "" {
			text += " (" + reason + ")"
		}
		s.Conditions = append(s.Conditions, text)
		switch kind {
		case "Ready", "Available", "Complete", "Succeeded":
			s.well = s.well || is == "True"
			bad = bad || is != "True" && kind != "Complete"
		case "Stalled", "Failed", "ReplicaFailure", "Degraded":
			bad = bad || is == "True"
		}
	}
	slices.Sort(s.Conditions)
	if len(conditions) == 0 {
		s.Status = statusText(status)
	}
	s.well = s.well && !bad && !s.Deleted && !s.Behind
	return s
}

func textOf(of map[string]any, field string) string {
	text, _ := of[field].(string)
	return text
}

// statusText returns the phase of an object, or else all of its status but times.
func statusText(status map[string]any) string {
	for _, field := range []string{"phase", "state"} {
		if text := textOf(status, field); text != "" {
			return field + " " + text
		}
	}
	if len(status) == 0 {
		return ""
	}
	text, err := json.Marshal(difference.Timeless(status))
	if err != nil {
		return fmt.Sprint(status)
	}
	return "status " + string(text)
}

// Well reports whether an object says that nothing is wrong with it.
func (s State) Well() bool { return s.well }

// Again reports whether a later state of an object is the same: for one that is deleted, that it is
// still held by the same finalizers.
func (s State) Again(later State) bool {
	if s.Gone || later.Gone || s.Deleted != later.Deleted {
		return false
	}
	if s.Deleted {
		return slices.Equal(s.Finalizers, later.Finalizers)
	}
	return s.Behind == later.Behind && s.Status == later.Status && slices.Equal(s.Conditions, later.Conditions)
}

// String returns the state in a line.
func (s State) String() string {
	var parts []string
	switch {
	case s.Gone:
		return "gone"
	case s.Deleted && len(s.Finalizers) > 0:
		parts = append(parts, "being deleted, held by "+strings.Join(s.Finalizers, ", "))
	case s.Deleted:
		parts = append(parts, "being deleted")
	}
	parts = append(parts, s.Conditions...)
	if s.Status != "" {
		parts = append(parts, s.Status)
	}
	if s.Behind {
		parts = append(parts, "its spec was not observed")
	}
	if len(parts) == 0 {
		return "there, without a status"
	}
	return printable.Line(strings.Join(parts, ", ")) // reasons and finalizers are text of others
}

// Unwell returns the subjects with which something was wrong when they were recorded.
func (r *Recording) Unwell() []Subject {
	var list []Subject
	for _, s := range r.Subjects {
		if obj := r.Find(s); obj != nil && !StateOf(obj).Well() {
			list = append(list, s)
		}
	}
	return list
}
