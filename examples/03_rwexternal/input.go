// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// division is the input, which readInput passes to wantOutput.
type division struct{ dividend, divisor int64 }

var divisionKey = step.NewKey[division]("division")

// input waits for the input Secret, reads it, and reports mistakes in it.
var input = step.Step[*v1.RWExternal]{
	Name:       "ReadInput",
	Conditions: []condition.Declaration{{Type: v1.ConditionInputReady}},
	Do:         readInput,
	// The input belongs to others: a change of a Secret reconciles the objects that name it.
	Watches: func() []step.Watch {
		return []step.Watch{step.WatchNamed(&corev1.Secret{}, func(obj *v1.RWExternal) []types.NamespacedName {
			return []types.NamespacedName{inputOf(obj)}
		})}
	},
}

func readInput(ctx context.Context, req *step.Request[*v1.RWExternal]) error {
	key := inputOf(req.Object)
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, key)
	if err != nil {
		if len(ctrlkit.Waits(err)) > 0 {
			req.Conditions.MarkUnhealthy(v1.ConditionInputReady, condition.SeverityInfo, "SecretNotFound", fmt.Sprintf("Secret %s does not exist: create it with the keys dividend and divisor", key))
		}
		return err
	}
	numbers, problem := divisionOf(secret)
	if problem != "" {
		// The user must change the Secret, and the change triggers a reconcile. The message has the
		// key and not its value, which is secret.
		req.Conditions.MarkUnhealthy(v1.ConditionInputReady, condition.SeverityError, "InvalidInput", fmt.Sprintf("Secret %s: %s", key, problem))
		return ctrlkit.ErrExit
	}
	req.Conditions.MarkHealthy(v1.ConditionInputReady, "InputRead", "")
	step.Put(req, divisionKey, numbers)
	return nil
}

// divisionOf reads the numbers in a Secret. problem describes a missing or invalid key.
func divisionOf(secret *corev1.Secret) (numbers division, problem string) {
	for _, n := range []struct {
		key    string
		target *int64
	}{{"dividend", &numbers.dividend}, {"divisor", &numbers.divisor}} {
		value, ok := secret.Data[n.key]
		if !ok {
			return division{}, fmt.Sprintf("the key %s is missing: add it with an integer", n.key)
		}
		var err error
		if *n.target, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return division{}, fmt.Sprintf("the value of the key %s is not an integer: change it", n.key)
		}
	}
	return numbers, ""
}
