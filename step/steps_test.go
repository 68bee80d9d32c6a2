// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
	"github.com/ctrlkit/ctrlkit/condition"
	"github.com/ctrlkit/ctrlkit/step"
)

type (
	request = step.Request[*Thing]
	steps   = []step.Step[*Thing]
	doFunc  = func(ctx context.Context, req *request) error
)

// passes is a Do, or a Cleanup, with nothing to do.
func passes(context.Context, *request) error { return nil }

// does is a Do that passes after what it does.
func does(do func(ctx context.Context, req *request)) doFunc {
	return func(ctx context.Context, req *request) error {
		do(ctx, req)
		return nil
	}
}

// tries is a Do that passes without an error.
func tries(do func(ctx context.Context, req *request) error) doFunc {
	return func(ctx context.Context, req *request) error {
		return do(ctx, req)
	}
}

// failsWith is a Do that fails.
func failsWith(err error) doFunc {
	return func(context.Context, *request) error { return err }
}

// logged is a Do that notes that it was called.
func logged(log *[]string, text string, then doFunc) doFunc {
	return func(ctx context.Context, req *request) error {
		addTo(log, text)
		return then(ctx, req)
	}
}

// logs is for all logs: steps of a group write them at the same time.
var logs sync.Mutex

func addTo(log *[]string, text string) {
	logs.Lock()
	defer logs.Unlock()
	*log = append(*log, text)
}

func doing(name string, do doFunc) step.Step[*Thing] { return step.Step[*Thing]{Name: name, Do: do} }

func cleaning(name string, do, cleanup doFunc) step.Step[*Thing] {
	return step.Step[*Thing]{Name: name, Do: do, Cleanup: cleanup}
}

// outside returns a Do that makes nothing for an object that is gone.
func outside(do doFunc) doFunc {
	return func(ctx context.Context, req *request) error {
		if err := req.EnsureFresh(ctx); err != nil {
			return err
		}
		return do(ctx, req)
	}
}

// keeping is a step with conditions.
func keeping(name string, do doFunc, kinds ...string) step.Step[*Thing] {
	k := doing(name, do)
	for _, kind := range kinds {
		k.Conditions = append(k.Conditions, condition.Declaration{Type: kind})
	}
	return k
}

func noAction(*request) ctrlkit.Action {
	return ctrlkit.NewAction("nothing", func(context.Context) (ctrl.Result, error) { return ctrlkit.NoRequeue() })
}

func count(all []string, one string) int {
	n := 0
	for _, s := range all {
		if s == one {
			n++
		}
	}
	return n
}

const claimedAnnotation = "test.example.com/id"

// claiming returns a step that claims.
func claiming(s step.Step[*Thing], claim func(req *request) error) step.Step[*Thing] {
	s.Claim = func(_ context.Context, req *request) error { return claim(req) }
	return s
}

func claimID(id string) func(*request) error {
	return func(req *request) error {
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimedAnnotation, id)
		return nil
	}
}

// gateOf leaves those objects alone whose annotation names another operator.
func gateOf(obj *Thing) (reason, message string) {
	if other := obj.Annotations["operator"]; other != "" && other != "us" {
		return "AnotherOperator", "reconciled by " + other
	}
	return "", ""
}
