// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 07_project is an operator for Projects: groups of Namespaces with the same labels,
// members and quota. Its handlers come from packages that do not know each other, and share one
// cache and one queue for each kind.
//
// It needs a cluster with the definitions in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/07_project
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/07_project/api/v1"
	"github.com/ctrlkit/ctrlkit/handlers"
	"github.com/ctrlkit/ctrlkit/leader"
	"github.com/ctrlkit/ctrlkit/observe"
)

func main() {
	options := ctrl.Options{LeaderElectionID: "project.project.ctrlkit.dev", LeaderElectionReleaseOnCancel: true} // the process ends with the manager
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
	mgr, _, err := newManager(config, options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the handlers, and their registry. It is not started.
func newManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, *handlers.Registry, error) {
	options.NewCache = handlers.NewCache
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return nil, nil, fmt.Errorf("registering types: %w", err)
		}
	}
	mgr, err := leader.NewManager(config, options)
	if err != nil {
		return nil, nil, fmt.Errorf("creating the manager: %w", err)
	}
	observer, err := observe.Manager(mgr, observe.WithPage())
	if err != nil {
		return nil, nil, fmt.Errorf("making the operator observable: %w", err)
	}
	registry, err := addHandlers(mgr, observer)
	if err != nil {
		return nil, nil, fmt.Errorf("adding the handlers: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, nil, err
	}
	// A kind that the cluster does not have is named at /readyz/kinds.
	if err := mgr.AddReadyzCheck("kinds", registry.Ready); err != nil {
		return nil, nil, err
	}
	return mgr, registry, nil
}
