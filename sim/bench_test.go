// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sim

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var measure = flag.Bool("measure", false, "measure how many plans run in a second")

// keeper keeps three Secrets and an external resource for each ConfigMap.
type keeper struct {
	client.Client
	buckets *ExternalClient
}

func (k keeper) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	cm := &corev1.ConfigMap{}
	if err := k.Get(ctx, req.NamespacedName, cm); err != nil || strings.HasPrefix(cm.Name, "kube-") {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	const finalizer = "bench.ctrlkit.dev/bucket"
	bucket := "bucket-" + string(cm.UID)
	if !cm.DeletionTimestamp.IsZero() {
		if err := k.buckets.Delete(ctx, bucket); err != nil && !errors.Is(err, ErrNotFound) {
			return ctrl.Result{}, err
		}
		cm.Finalizers = nil
		return ctrl.Result{}, k.Update(ctx, cm)
	}
	if len(cm.Finalizers) == 0 {
		cm.Finalizers = []string{finalizer}
		return ctrl.Result{}, k.Update(ctx, cm)
	}
	if _, err := k.buckets.Get(ctx, bucket); errors.Is(err, ErrNotFound) {
		if _, err := k.buckets.Create(ctx, Creation{Name: bucket, Owner: cm.UID}); err != nil {
			return ctrl.Result{}, err
		}
	} else if err != nil {
		return ctrl.Result{}, err
	}
	for _, name := range []string{"a", "b", "c"} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: cm.Name + "-" + name, Namespace: cm.Namespace}}
		if err := k.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if secret.UID != types.UID("") {
			continue
		}
		if err := ctrl.SetControllerReference(cm, secret, k.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := k.Create(ctx, secret); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func keeperWorkload() *Workload {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}
	return &Workload{
		Externals: []External{{Name: "buckets", Identity: IdentityName}},
		Operator: Manager(func(mgr ctrl.Manager, p *Process) error {
			return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(keeper{mgr.GetClient(), p.External("buckets")})
		}),
		Script: func(w *World) {
			w.Create(cm)
			w.Settle()
			w.Delete(cm)
			w.Settle()
		},
	}
}

// How many plans of one object with three children and one external resource one core runs in a
// second: GOMAXPROCS=1 go test -run TestPlansPerSecond -v ./sim -measure. Nothing is asserted, as
// machines differ.
func TestPlansPerSecond(t *testing.T) {
	if !*measure {
		t.Skip("it measures: -measure")
	}
	measurePlans(t, keeperWorkload(), 1, 2)
}
