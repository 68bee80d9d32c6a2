// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/ctrlkit/ctrlkit/internal/sim/oracle"
	"github.com/ctrlkit/ctrlkit/internal/tools/rings"
)

// started is an operator that writes, a time after it has begun, beside a manager that starts: as one
// that installs its own configuration does.
type started struct {
	after   time.Duration
	options func(*ctrl.Options)
}

func (s started) operate(ctx context.Context, p *Process) error {
	options := p.ManagerOptions()
	if s.options != nil {
		s.options(&options)
	}
	mgr, err := ctrl.NewManager(p.Config(), options)
	if err != nil {
		return err
	}
	if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Secret{}); err != nil { // for which Start waits
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		return ctrl.Result{}, client.IgnoreNotFound(mgr.GetClient().Get(ctx, r.NamespacedName, &corev1.ConfigMap{}))
	}))
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() { written <- s.install(ctx, mgr, p) }()
	err = mgr.Start(ctx)
	return errors.Join(err, <-written)
}

// install creates what is missing.
func (s started) install(ctx context.Context, mgr ctrl.Manager, p *Process) error {
	c, err := client.New(p.Config(), client.Options{Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
		return nil
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(configMap("a")), configMap("a")); !apierrors.IsNotFound(err) {
		return err
	}
	return c.Create(ctx, configMap("a"))
}

// webhooks is a server that no one asks.
type webhooks struct{ webhook.Server }

func (webhooks) NeedLeaderElection() bool { return false }
func (webhooks) Start(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// elects lets a manager wait for webhooks, and become the leader.
func elects(o *ctrl.Options) {
	o.LeaderElection, o.LeaderElectionID, o.LeaderElectionNamespace, o.LeaderElectionReleaseOnCancel = true, "x", "default", true
	o.WebhookServer = webhooks{}
}

// wraps makes the cache of a manager as package handlers does.
func wraps(o *ctrl.Options) {
	inner := o.NewCache
	o.NewCache = func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		c, err := inner(config, options)
		return struct{ cache.Cache }{c}, err
	}
}

// A process that is stopped or crashes in its first moments, while its manager starts its caches, its
// webhooks or its election, ends. It is no hang, and the next process does the work.
func TestFaultsWhileAManagerStarts(t *testing.T) {
	rings.Test(t, "simulates")
	for name, options := range map[string]func(*ctrl.Options){"alone": nil, "elected": elects, "wrapped": wraps} {
		for _, plan := range []string{"crash after write 1", "stop at write 1"} {
			for _, after := range []time.Duration{0, 50 * time.Millisecond, 150 * time.Millisecond, 350 * time.Millisecond} {
				w := Workload{Operator: started{after, options}.operate, Script: func(w *World) { w.Settle() }}
				violations, trace := violationsOf(t, w, plan)
				if len(violations) > 0 {
					t.Errorf("%s, %s after %s: %v\n%s", name, plan, after, violations, trace)
				}
			}
		}
	}
}

// A manager whose caches never sync, because its rules forbid it to list what it has an informer for, does
// not hang at the end of the run. It is accused of that, and of nothing else.
func TestACacheThatNeverSyncs(t *testing.T) {
	w := Workload{RBAC: []string{"testdata/rbac/complete"}, Operator: started{}.operate, Script: func(w *World) { w.Settle() }}
	violations, trace := violationsOf(t, w, "")
	for _, v := range violations {
		if v.Oracle != oracle.Allowed {
			t.Errorf("%v\n%s", v, trace)
		}
	}
	if len(violations) == 0 {
		t.Error("it may list Secrets")
	}
}
