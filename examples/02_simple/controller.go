// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/step"
)

// +kubebuilder:rbac:groups=demo.ctrlkit.dev,resources=simples,verbs=get;list;watch
// +kubebuilder:rbac:groups=demo.ctrlkit.dev,resources=simples/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

//go:generate go tool controller-gen rbac:roleName=simple-operator paths=. output:rbac:dir=config/rbac

// options skip what is unchanged: the result depends only on the spec.
var options = step.Options[*v1.Simple]{Name: "simple", SkipUnchanged: true}

// control adds the controller of Simples to a manager.
func control(mgr ctrl.Manager) error {
	return step.Control(mgr, options, nonZeroDivisor, division)
}

var division = step.Step[*v1.Simple]{Name: "Divide", Do: divide}

// nonZeroDivisor keeps the condition DivisorNonZero, and ends the reconcile if the divisor is zero.
var nonZeroDivisor = step.Step[*v1.Simple]{
	Name:       "EnsureNonZeroDivisor",
	Conditions: []condition.Declaration{{Type: v1.ConditionDivisorNonZero}},
	Do:         ensureNonZeroDivisor,
}

func ensureNonZeroDivisor(_ context.Context, req *step.Request[*v1.Simple]) error {
	if req.Object.Spec.Divisor == 0 {
		// The user must change the spec, and the change triggers a reconcile: this is neither a
		// wait nor a failure.
		req.Object.Status.Quotient, req.Object.Status.Remainder = nil, nil
		req.Conditions.MarkUnhealthy(v1.ConditionDivisorNonZero, condition.SeverityError, "DivisorIsZero", "division by zero: change spec.divisor")
		return ctrlkit.ErrExit
	}
	req.Conditions.MarkHealthy(v1.ConditionDivisorNonZero, "DivisorIsNotZero", "")
	return nil
}

// divide sets the result in the status.
func divide(_ context.Context, req *step.Request[*v1.Simple]) error {
	spec, status := req.Object.Spec, &req.Object.Status
	status.Quotient, status.Remainder = new(spec.Dividend/spec.Divisor), new(spec.Dividend%spec.Divisor)
	return nil
}
