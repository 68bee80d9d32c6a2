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
	doFunc  = func(ctx context.Context, req *request) (ctrl.Result, error)
)

// passes is a Do, or a Cleanup, with nothing to do.
func passes(context.Context, *request) (ctrl.Result, error) { return ctrlkit.NoRequeue() }

// does is a Do that passes after what it does.
func does(do func(ctx context.Context, req *request)) doFunc {
	return func(ctx context.Context, req *request) (ctrl.Result, error) {
		do(ctx, req)
		return ctrlkit.NoRequeue()
	}
}

// tries is a Do that passes without an error.
func tries(do func(ctx context.Context, req *request) error) doFunc {
	return func(ctx context.Context, req *request) (ctrl.Result, error) {
		return ctrlkit.RequeueIfError(do(ctx, req))
	}
}

// failsWith is a Do that fails.
func failsWith(err error) doFunc {
	return func(context.Context, *request) (ctrl.Result, error) { return ctrl.Result{}, err }
}

// logged is a Do that notes that it was called.
func logged(log *[]string, text string, then doFunc) doFunc {
	return func(ctx context.Context, req *request) (ctrl.Result, error) {
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

func doing(name string, do doFunc) step.Step[*Thing] { return step.Func(name, do) }

// A cleaner is a step with a Cleanup.
type cleaner struct {
	step.Step[*Thing]
	cleanup doFunc
}

func (c cleaner) Cleanup(ctx context.Context, req *request) (ctrl.Result, error) {
	return c.cleanup(ctx, req)
}

func cleaning(name string, do, cleanup doFunc) step.Cleaner[*Thing] {
	return cleaner{doing(name, do), cleanup}
}

// A poster is a step with a Cleanup and a Post.
type poster struct {
	cleaner
	post func(ctx context.Context, req *request) error
}

func (p poster) Post(ctx context.Context, req *request) error { return p.post(ctx, req) }

// posting is a step without a Cleanup that has a Post.
type posting struct {
	step.Step[*Thing]
	post func(ctx context.Context, req *request) error
}

func (p posting) Post(ctx context.Context, req *request) error { return p.post(ctx, req) }

// A keeper is a step with conditions.
type keeper struct {
	step.Step[*Thing]
	declared []condition.Declaration
}

func (k keeper) Conditions() []condition.Declaration { return k.declared }

func keeping(name string, do doFunc, kinds ...string) step.Step[*Thing] {
	k := keeper{Step: doing(name, do)}
	for _, kind := range kinds {
		k.declared = append(k.declared, condition.Declaration{Type: kind})
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

// A claiming step claims an id, and cleans up.
type claiming struct {
	step.Cleaner[*Thing]
	claim func(req *request) error
}

func (c claiming) Claim(_ context.Context, req *request) error { return c.claim(req) }

var _ step.Claimer[*Thing] = claiming{}

func claimID(id string) func(*request) error {
	return func(req *request) error {
		metav1.SetMetaDataAnnotation(&req.Object.ObjectMeta, claimedAnnotation, id)
		return nil
	}
}

// A gatekeeper leaves those objects alone whose annotation names another operator.
type gatekeeper struct{ step.Cleaner[*Thing] }

func (gatekeeper) Gate(obj *Thing) (reason, message string) {
	if other := obj.Annotations["operator"]; other != "" && other != "us" {
		return "AnotherOperator", "reconciled by " + other
	}
	return "", ""
}
