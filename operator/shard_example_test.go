// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/ctrlkit/ctrlkit/apply"
	"github.com/ctrlkit/ctrlkit/operator"
	"github.com/ctrlkit/ctrlkit/step"
)

// An operator that copies ConfigMaps to Secrets, and whose replicas share the ConfigMaps if there
// is a ring. The ring lists what the operator reconciles, and what that controls:
//
//	apiVersion: sharding.timebertt.dev/v1alpha1
//	kind: ControllerRing
//	metadata:
//	  name: copies
//	spec:
//	  resources:
//	    - group: ""
//	      resource: configmaps
//	      controlledResources:
//	        - group: ""
//	          resource: secrets
//
// With RING unset it is the operator that it was before: its leader does all work.
func ExampleNewShardManager() {
	run := func() error {
		mgr, shard, err := operator.NewShardManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "copies"}, operator.ShardOptions{Ring: os.Getenv("RING")})
		if err != nil {
			return err
		}
		if err := operator.Observe(mgr); err != nil {
			return err
		}
		engine, err := step.New(step.Options[*corev1.ConfigMap]{
			Name: "copies", Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Observers: operator.ObserversOf(mgr), Shard: shard,
		}, apply.Children("Copy", func(_ context.Context, req *step.Request[*corev1.ConfigMap], want *apply.Set) error {
			want.Add(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Object.Namespace, Name: req.Object.Name}, StringData: req.Object.Data})
			return nil
		}, apply.Owns(&corev1.Secret{})))
		if err != nil {
			return err
		}
		if err := engine.Complete(ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{})); err != nil {
			return err
		}
		return mgr.Start(ctrl.SetupSignalHandler())
	}
	_ = run // in main: it ends with an error when the Lease is lost, and the process with it
}
