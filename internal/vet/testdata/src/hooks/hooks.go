// Package hooks has implementations of the actions of a document, with hooks.
package hooks

import (
	"context"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit"
)

// RolloutImpl and NewRollout are like the generated ones.
type RolloutImpl interface {
	Look(ctx context.Context, logger logr.Logger) (ctrl.Result, error)
}

type Rollout struct{}

func NewRollout(RolloutImpl, ...ctrlkit.ActionOption) *Rollout { return nil }

type actions struct{}

func (actions) Look(context.Context, logr.Logger) (ctrl.Result, error) { return ctrlkit.NoRequeue() }

type wrong struct{ actions }

func (w *wrong) BeforeActionRun(name string, ctx context.Context) { // want `BeforeActionRun is never called: its parameters are not \(action string, ctx context.Context, logger logr.Logger\)`
	logr.FromContextOrDiscard(ctx).Info("Running", "action", name)
}

func (w *wrong) AfterActionRun(string, context.Context, logr.Logger) {}

type half struct{ actions }

func (half) AfterActionRun(action string, ctx context.Context, logger logr.Logger) {} // want `AfterActionRun is never called without a method BeforeActionRun`

type results struct{ actions }

func (results) BeforeActionRun(string, context.Context, logr.Logger) {}

func (results) AfterActionRun(string, context.Context, logr.Logger) error { return nil } // want `AfterActionRun is never called: its parameters`

type right struct{ actions }

func (r *right) BeforeActionRun(action string, ctx context.Context, logger logr.Logger) {
	logger.Info("Running", "action", action)
}

func (r *right) AfterActionRun(action string, ctx context.Context, logger logr.Logger) {}

// other has no actions.
type other struct{}

func (other) BeforeActionRun() {}

type exempt struct{ actions }

func (exempt) AfterActionRun() {} //nolint:hooks // a method of mine
