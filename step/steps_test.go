// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"sync"

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
