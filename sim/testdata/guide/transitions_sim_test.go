// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package guide

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/sim"
)

func TestMemcachedTransitions(t *testing.T) {
	sim.Run(t, sim.Workload{
		Scheme: scheme,
		CRDs:   []string{"crd"},
		Operator: sim.Manager(func(mgr ctrl.Manager, p *sim.Process) error {
			return (&MemcachedReconciler{Client: mgr.GetClient()}).SetupWithManager(mgr)
		}),
		Script: func(w *sim.World) {
			w.Create(&Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache", Namespace: "default"}, Spec: MemcachedSpec{Size: 1}})
		},
	}, sim.WithTransitions(""))
}
