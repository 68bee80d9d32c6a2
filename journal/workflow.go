// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package journal

import "github.com/ctrlkit/ctrlkit/internal/engine/outline"

// WorkflowBegan says that a workflow begins, before its first action. A [Ring] does not keep it.
type WorkflowBegan struct {
	Step string
	// Workflow is what runs. Describing it costs more than the event.
	Workflow interface{ Describe() outline.Node }
}

func (WorkflowBegan) event() {}

func (e WorkflowBegan) String() string { return "workflow of " + e.Step + " begins" }

// ConditionChanged says that a condition of the object was written with another status or reason.
type ConditionChanged struct {
	Type   string
	Status string // "True", "False" or "Unknown"
	Reason string
}

func (ConditionChanged) event() {}

func (e ConditionChanged) String() string {
	return "condition " + e.Type + " became " + e.Status + " (" + e.Reason + ")"
}

func (e ConditionChanged) withTexts(f func(string) string) Event {
	e.Type, e.Status, e.Reason = f(e.Type), f(e.Status), f(e.Reason)
	return e
}
