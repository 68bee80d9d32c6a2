// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 01_cronjob is an operator that starts Jobs at the times of a schedule.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/01_cronjob
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/01_cronjob/api/v1"
	"github.com/ctrlkit/ctrlkit/journal"
	"github.com/ctrlkit/ctrlkit/leader"
	"github.com/ctrlkit/ctrlkit/observe"
)

func main() {
	options := ctrl.Options{LeaderElectionID: "cronjob.batch.ctrlkit.dev", LeaderElectionReleaseOnCancel: true} // the process ends with the manager
	observe.BindFlags(flag.CommandLine, &options)
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "reconcile in one instance at a time")
	flag.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "the `namespace` of the lease; required outside of a cluster")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(ctrl.SetupSignalHandler(), options); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs the operator until ctx is done.
func run(ctx context.Context, options ctrl.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	mgr, err := newManager(ctx, config, options, time.Now)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the controller of CronJobs. It is not started.
func newManager(ctx context.Context, config *rest.Config, options ctrl.Options, now func() time.Time) (ctrl.Manager, error) {
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	// Managed fields are a large part of an object in memory, and nothing here reads them.
	options.Cache.DefaultTransform = cache.TransformStripManagedFields()

	mgr, err := leader.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding a health check: %w", err)
		}
	}
	observer, err := observe.Manager(mgr, observe.WithPage())
	if err != nil {
		return nil, fmt.Errorf("making the operator observable: %w", err)
	}
	cronJobs := &CronJobController{
		Client:    mgr.GetClient(),
		APIReader: mgr.GetAPIReader(),
		Recorder:  mgr.GetEventRecorder("cronjob-operator"),
		Observers: []journal.Observer{observer},
		Now:       now,
	}
	if err := cronJobs.SetupWithManager(ctx, mgr); err != nil {
		return nil, fmt.Errorf("setting up the controller of CronJobs: %w", err)
	}
	return mgr, nil
}
