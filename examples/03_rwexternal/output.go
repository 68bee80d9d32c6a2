// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// newOutput returns the step that keeps the output Secret, and deletes it when the RWExternal is
// deleted. The output may be in another namespace, where it cannot have an owner reference: with
// apply.Unowned it never has one.
func newOutput() step.Step[*v1.RWExternal] {
	return apply.Children("Output", wantOutput, apply.Tracks(&corev1.Secret{}), apply.Condition(v1.ConditionOutputReady))
}

func wantOutput(_ context.Context, req *step.Request[*v1.RWExternal], want *apply.Set) error {
	numbers, ok := step.Lookup(req, divisionKey)
	if !ok {
		return ctrlkit.Wait("the input")
	}
	if numbers.divisor == 0 { // a valid input without a result: the output stays as it is
		req.Conditions.MarkUnhealthy(v1.ConditionOutputReady, condition.SeverityError, "DivisorIsZero",
			fmt.Sprintf("division by zero: change the key divisor of Secret %s", inputOf(req.Object)))
		return ctrlkit.ErrExit
	}
	key := outputOf(req.Object)
	want.Add(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		StringData: map[string]string{
			"quotient":  strconv.FormatInt(numbers.dividend/numbers.divisor, 10),
			"remainder": strconv.FormatInt(numbers.dividend%numbers.divisor, 10),
		},
	}, apply.Unowned)
	req.Object.Status.OutputSecret = &v1.SecretReference{Namespace: key.Namespace, Name: key.Name}
	return nil
}
