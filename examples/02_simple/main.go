// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 02_simple is an operator that divides the two numbers in the spec of an object, and
// reports in a condition when it cannot.
//
// It needs a cluster with the definition in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/02_simple
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
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/02_simple/api/v1"
	"github.com/ctrlkit/ctrlkit/leader"
	"github.com/ctrlkit/ctrlkit/observe"
)

func main() {
	options := ctrl.Options{LeaderElectionID: "simple.demo.ctrlkit.dev", LeaderElectionReleaseOnCancel: true} // the process ends with the manager
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
	mgr, err := newManager(config, options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the controller. It is not started.
func newManager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	mgr, err := leader.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	observer, err := observe.Manager(mgr, observe.WithPage())
	if err != nil {
		return nil, fmt.Errorf("making the operator observable: %w", err)
	}
	if _, err := addController(mgr, observer); err != nil {
		return nil, fmt.Errorf("adding the controller: %w", err)
	}
	return mgr, nil
}
