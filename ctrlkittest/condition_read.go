// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkittest

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/condition"
)

// A placed condition is a condition with its index in the list.
type placed struct {
	metav1.Condition
	index int
}

// String returns where it is: `status.conditions[1] "Ready"`.
func (p placed) String() string { return fmt.Sprintf("status.conditions[%d] %q", p.index, p.Type) }

// An object is what the rules check.
type object struct {
	conditions []placed
	generation int64
	deleting   bool
}

// read returns what the rules check, and what could not be read. It returns no object if the type
// has no conditions.
func read(obj client.Object) (*object, problems) {
	o := &object{generation: obj.GetGeneration(), deleting: !obj.GetDeletionTimestamp().IsZero()}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return o.readUnstructured(u)
	}
	conditions, err := condition.Of(obj)
	if err != nil {
		return nil, problems{{ConditionRuleReadable, err.Error()}}
	}
	for i, c := range conditions {
		o.conditions = append(o.conditions, placed{c, i})
	}
	return o, nil
}

func (o *object) readUnstructured(u *unstructured.Unstructured) (*object, problems) {
	field, _, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	list, ok := field.([]any)
	if err != nil || field != nil && !ok {
		return nil, problems{{ConditionRuleReadable, "status.conditions is not a list: declare it as []metav1.Condition"}}
	}
	var found problems
	for i, element := range list {
		content, ok := element.(map[string]any)
		if !ok {
			found.add(ConditionRuleReadable, "status.conditions[%d] is %T: declare the list as []metav1.Condition", i, element)
			continue
		}
		p := placed{index: i}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &p.Condition); err != nil {
			found.add(ConditionRuleReadable, "status.conditions[%d]: %v: declare the list as []metav1.Condition", i, err)
			continue
		}
		o.conditions = append(o.conditions, p)
	}
	return o, found
}

// find returns the first condition of a type.
func (o *object) find(conditionType string) (placed, bool) {
	for _, c := range o.conditions {
		if c.Type == conditionType {
			return c, true
		}
	}
	return placed{}, false
}

// is reports whether the object has a condition of this type that is True.
func (o *object) is(conditionType string) bool {
	c, ok := o.find(conditionType)
	return ok && c.Status == metav1.ConditionTrue
}
