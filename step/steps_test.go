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

type doFunc = func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error)

// passes is a Do, or a Cleanup, with nothing to do.
func passes(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrlkit.NoRequeue() }

// failsWith is a Do that fails.
func failsWith(err error) doFunc {
	return func(context.Context, *step.Request[*Thing]) (ctrl.Result, error) { return ctrl.Result{}, err }
}

// logged is a Do that notes that it was called.
func logged(log *[]string, text string, then doFunc) doFunc {
	return func(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
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

func (c cleaner) Cleanup(ctx context.Context, req *step.Request[*Thing]) (ctrl.Result, error) {
	return c.cleanup(ctx, req)
}

func cleaning(name string, do, cleanup doFunc) step.Cleaner[*Thing] {
	return cleaner{doing(name, do), cleanup}
}

// A poster is a step with a Cleanup and a Post.
type poster struct {
	cleaner
	post func(ctx context.Context, req *step.Request[*Thing]) error
}

func (p poster) Post(ctx context.Context, req *step.Request[*Thing]) error { return p.post(ctx, req) }

// posting is a step without a Cleanup that has a Post.
type posting struct {
	step.Step[*Thing]
	post func(ctx context.Context, req *step.Request[*Thing]) error
}

func (p posting) Post(ctx context.Context, req *step.Request[*Thing]) error { return p.post(ctx, req) }

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
