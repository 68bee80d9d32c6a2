package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/03_rwexternal/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// division is what readInput leaves to writeOutput.
type division struct{ dividend, divisor int64 }

var divisionKey = step.NewKey[division]("division")

// readInput reads the input Secret, waits for it, and says what is wrong with it.
type readInput struct{}

var _ step.ConditionManager[*v1.RWExternal] = readInput{}

func (readInput) Name() string { return "ReadInput" }

func (readInput) Conditions() []condition.Declaration {
	return []condition.Declaration{{Type: v1.ConditionInputReady}}
}

func (readInput) Do(ctx context.Context, req *step.Request[*v1.RWExternal]) (ctrl.Result, error) {
	key := inputOf(req.Object)
	secret, err := step.GetOrWait[*corev1.Secret](ctx, req, key)
	if err != nil {
		if len(ctrlkit.Waits(err)) > 0 {
			req.Conditions.Bad(v1.ConditionInputReady, condition.Info, "SecretNotFound", fmt.Sprintf("Secret %s does not exist: create it with the keys dividend and divisor", key))
		}
		return ctrlkit.RequeueIfError(err)
	}
	numbers, problem := divisionOf(secret)
	if problem != "" {
		// Its owner must change it, and that is an event. The message names the key and not what is in it: it is a secret.
		req.Conditions.Bad(v1.ConditionInputReady, condition.Error, "InvalidInput", fmt.Sprintf("Secret %s: %s", key, problem))
		return ctrlkit.Exit()
	}
	req.Conditions.Good(v1.ConditionInputReady, "InputRead", "")
	step.Put(req, divisionKey, numbers)
	return ctrlkit.NoRequeue()
}

// divisionOf reads the numbers of a Secret, or says what is wrong with them.
func divisionOf(secret *corev1.Secret) (numbers division, problem string) {
	for key, target := range map[string]*int64{"dividend": &numbers.dividend, "divisor": &numbers.divisor} {
		value, err := strconv.ParseInt(string(secret.Data[key]), 10, 64)
		if err != nil {
			return division{}, "it needs two keys, dividend and divisor, with a whole number each"
		}
		*target = value
	}
	if numbers.divisor == 0 {
		return division{}, "the divisor is zero"
	}
	return numbers, ""
}
