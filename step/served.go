// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// WhenServed calls setup, which adds the controller of a kind to mgr, as soon as the API server has the
// kinds: at once, or at most ten seconds after the last definition is there. The rest of the operator
// runs meanwhile.
//
//	err := step.WhenServed(mgr, func() error { return engine.Complete(b) }, &v1.Backup{})
//
// The kinds are given as empty objects. An error of setup ends the operator if mgr has started, and is
// returned otherwise. A kind that disappears later is not noticed.
func WhenServed(mgr manager.Manager, setup func() error, kinds ...client.Object) error {
	var missing []schema.GroupVersionKind
	for _, obj := range kinds {
		gvk, err := mgr.GetClient().GroupVersionKindFor(obj)
		if err != nil {
			return fmt.Errorf("kind of %T: %w: register it with the scheme of the manager", obj, err)
		}
		if _, err := mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); apimeta.IsNoMatchError(err) {
			missing = append(missing, gvk)
		} else if err != nil {
			return err
		}
	}
	if len(missing) == 0 {
		return setup()
	}
	log.Log.WithName("step").Info("The API server does not have kinds of the operator: their controller starts when it has", "kinds", missing)
	return mgr.Add(whenServed{mgr.GetRESTMapper(), missing, setup})
}

// whenServed waits for kinds. Every replica waits: it is the controller that needs to lead.
type whenServed struct {
	mapper  apimeta.RESTMapper
	missing []schema.GroupVersionKind
	setup   func() error
}

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (whenServed) NeedLeaderElection() bool { return false }

// Start implements [manager.Runnable].
func (w whenServed) Start(ctx context.Context) error {
	for _, gvk := range w.missing {
		err := wait.PollUntilContextCancel(ctx, lookForKind, true, func(context.Context) (bool, error) {
			_, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
			return err == nil, nil //nolint:nilerr // whatever the error is, it is asked again
		})
		if err != nil {
			return nil //nolint:nilerr // the operator ends
		}
	}
	return w.setup()
}
