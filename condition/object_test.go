// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package condition_test

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A database has conditions where kubebuilder writes them.
type database struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Status struct{ Conditions []metav1.Condition }
}

func (d *database) DeepCopyObject() runtime.Object { return d.copy() }

func (d *database) copy() *database {
	c := *d
	c.ObjectMeta = *d.ObjectMeta.DeepCopy()
	c.Status.Conditions = slices.Clone(d.Status.Conditions)
	return &c
}

const isTrue, isFalse, isUnknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

var noon = metav1.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)

// declared are the conditions of the tests.
var declared = []condition.Declaration{
	{Type: "SecretFound"},
	{Type: "Degraded", AbnormalTrue: true},
	{Type: "BackupDone", Informational: true},
}

// stored returns a condition as an earlier reconcile has stored it, of generation 1.
func stored(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: noon}
}

func newDatabase(conditions ...metav1.Condition) *database {
	d := &database{}
	d.Generation = 1
	d.Status.Conditions = conditions
	return d
}
