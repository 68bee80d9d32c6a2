// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 01_cronjob is an operator that starts Jobs at the times of a schedule.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/01_cronjob
package main

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/operator"
)

func main() { cronJobs(time.Now).Main() }

// cronJobs is the operator, with the clock that main or a test gives it.
func cronJobs(now func() time.Time) operator.Operator {
	return operator.Operator{
		Name:  "cronjob.batch.ctrlkit.dev",
		Types: []func(*runtime.Scheme) error{v1.AddToScheme},
		Controls: []func(ctrl.Manager) error{func(mgr ctrl.Manager) error {
			return (&CronJobController{
				Client:    mgr.GetClient(),
				APIReader: mgr.GetAPIReader(),
				Recorder:  mgr.GetEventRecorder("cronjob-operator"),
				Observers: operator.ObserversOf(mgr),
				Now:       now,
			}).SetupWithManager(mgr)
		}},
		Options: func(options *ctrl.Options) {
			// Managed fields are a large part of an object in memory, and nothing here reads them.
			options.Cache.DefaultTransform = cache.TransformStripManagedFields()
		},
	}
}
