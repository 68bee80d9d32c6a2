// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package ctrlkit_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

var errBoom = errors.New("boom")

// journal records the actions of a test in the order in which they run.
type journal struct {
	mu  sync.Mutex
	ran []string
}

func (j *journal) note(s string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ran = append(j.ran, s)
}

// ends returns an action that notes its name and ends with the outcome given.
func (j *journal) ends(name string, result ctrl.Result, err error) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
		j.note(name)
		return result, err
	})
}

func (j *journal) ok(name string) ctrlkit.Action { return j.ends(name, ctrl.Result{}, nil) }

func (j *journal) fails(name string) ctrlkit.Action { return j.ends(name, ctrl.Result{}, errBoom) }

func (j *journal) waits(name string) ctrlkit.Action {
	return ctrlkit.NewAction(name, func(context.Context) (ctrl.Result, error) {
		j.note(name)
		return ctrl.Result{}, ctrlkit.Wait("the world")
	})
}

func (j *journal) want(t *testing.T, want ...string) {
	t.Helper()
	same(t, "actions run", want, j.ran)
}

func (j *journal) sorted() []string { return slices.Sorted(slices.Values(j.ran)) }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func background() context.Context { return context.Background() }

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
