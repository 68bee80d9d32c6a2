// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ctrlkit/ctrlkit/sim"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// fakeDNS is a fake of a DNS server, as a user writes one.
type fakeDNS struct{ owners map[string]types.UID }

// Resources lets the simulator look for orphans, and compare.
func (d *fakeDNS) Resources() []sim.OwnedResource {
	var list []sim.OwnedResource
	for _, host := range slices.Sorted(maps.Keys(d.owners)) {
		list = append(list, sim.OwnedResource{Resource: sim.Resource{ID: host}, Owner: d.owners[host]})
	}
	return list
}

var _ sim.Lister = &fakeDNS{}

// dns is not the fake but its home: each run has an instance of its own, which outlives crashes of
// the operator.
var dns = sim.NewFake("dns", func() *fakeDNS { return &fakeDNS{owners: map[string]types.UID{}} })

// keepRecord keeps a DNS record for settings. Each use of the fake goes through p.Call, where faults
// strike.
func keepRecord(ctx context.Context, p *sim.Process, c client.Client, cm *corev1.ConfigMap) error {
	fake, host := dns.Of(p), cm.Name+".example.com"
	call := sim.Call{System: "dns", What: host, Mutates: true, Owner: cm.UID}
	switch {
	case cm.DeletionTimestamp != nil && len(cm.Finalizers) > 0:
		call.Verb = "delete"
		if err := p.Call(ctx, call, func() error { delete(fake.owners, host); return nil }); err != nil {
			return err
		}
		cm.Finalizers = nil
		return c.Update(ctx, cm)
	case cm.DeletionTimestamp != nil:
		return nil
	case len(cm.Finalizers) == 0:
		cm.Finalizers = []string{finalizer} // before there is something to clean up
		return c.Update(ctx, cm)
	}
	var now types.UID
	look := sim.Call{System: "dns", Verb: "get", What: host}
	if err := p.Call(ctx, look, func() error { now = fake.owners[host]; return nil }); err != nil || now == cm.UID {
		return err
	}
	call.Verb = "create"
	return p.Call(ctx, call, func() error { fake.owners[host] = cm.UID; return nil })
}

// A fake of a DNS server is kept across crashes of the operator, and is new in each run. Because it
// lists its records, the simulator finds those that are orphans.
func ExampleFake() {
	sim.Run(t, sim.Workload{
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Complete(reconcile.Func(
				func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
					ctx, cancel := context.WithTimeout(ctx, time.Minute) // or a call that hangs lasts for ever
					defer cancel()
					var cm corev1.ConfigMap
					if err := mgr.GetClient().Get(ctx, req.NamespacedName, &cm); err != nil || cm.Labels["example"] == "" {
						return ctrl.Result{}, client.IgnoreNotFound(err)
					}
					return ctrl.Result{}, keepRecord(ctx, p, mgr.GetClient(), &cm)
				}))
		}),
		Script: func(w *sim.World) {
			w.Create(settings())
			w.Settle()
			if n := len(dns.Of(w).owners); n != 1 {
				t.Errorf("%d DNS records", n)
			}
			w.Delete(settings())
		},
	})
}

// Players are chosen in the workload: here the Jobs that have the label fail do, nothing plays
// Services, and ConfigMaps of a label get a Secret as another controller would make it.
func ExampleWorkload_players() {
	jobs := player.Job(func(job *batchv1.Job) player.Outcome {
		if job.Labels["fails"] != "" {
			return player.Fail
		}
		return player.Succeed
	})
	tokens := player.New(func(s *player.Stage, cm *corev1.ConfigMap) error {
		if cm.Labels["example"] == "" || len(player.Children[*corev1.Secret](s, cm)) > 0 {
			return nil
		}
		return s.CreateFor(cm, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-token"}})
	})
	set := player.Defaults().With(jobs, tokens).Without(&corev1.Service{})
	for _, p := range set {
		fmt.Println(p.Name())
	}
	_ = sim.Workload{Players: set}
	// Output:
	// deployment-player
	// replicaset-player
	// statefulset-player
	// daemonset-player
	// job-player
	// pod-player
	// persistentvolumeclaim-player
	// ingress-player
	// configmap-player
}
