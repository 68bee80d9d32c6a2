// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A database has conditions where kubebuilder writes them.
type database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func (d *database) DeepCopyObject() runtime.Object {
	c := *d
	c.ObjectMeta = *d.ObjectMeta.DeepCopy()
	c.Status.Conditions = append([]metav1.Condition(nil), d.Status.Conditions...)
	return &c
}

var noon = metav1.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)

// newDatabase returns an object of generation 3 with these conditions.
func newDatabase(conditions ...metav1.Condition) *database {
	d := &database{
		TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Database"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "one", Generation: 3},
	}
	d.Status.Conditions = conditions
	return d
}

// with returns a condition of generation 3 that has not changed since noon.
func with(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, ObservedGeneration: 3, LastTransitionTime: noon}
}

func ready() metav1.Condition { return with("Ready", metav1.ConditionTrue, "Ready", "") }
func unready() metav1.Condition {
	return with("Ready", metav1.ConditionFalse, "Waiting", "waits for a Secret")
}
func found() metav1.Condition { return with("SecretFound", metav1.ConditionTrue, "Found", "") }
func reconciling() metav1.Condition {
	return with("Reconciling", metav1.ConditionTrue, "Waiting", "waits for a Secret")
}
func stalled() metav1.Condition {
	return with("Stalled", metav1.ConditionTrue, "Forbidden", "may not read Secrets")
}
func paused() metav1.Condition {
	return with("Paused", metav1.ConditionTrue, "Paused", "its owner wants it")
}

// having returns c as change makes it.
func having(c metav1.Condition, change func(*metav1.Condition)) metav1.Condition {
	change(&c)
	return c
}

func toUnstructured(t *testing.T, obj client.Object) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}
