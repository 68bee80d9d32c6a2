// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 05_user is an operator that keeps users of MySQL and MariaDB servers, with their grants
// and passwords.
//
// It needs a cluster with the definitions in config/crd, which ctrlkit run starts:
//
//	ctrlkit run ./examples/05_user
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/05_user/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/05_user/mysqlserver"
	"github.com/ctrlkit/ctrlkit/leader"
	"github.com/ctrlkit/ctrlkit/observe"
)

func main() {
	options := ctrl.Options{LeaderElectionID: "mysql.ctrlkit.dev", LeaderElectionReleaseOnCancel: true} // the process ends with the manager
	observe.BindFlags(flag.CommandLine, &options)
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "reconcile in one instance at a time")
	flag.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "the `namespace` of the lease; required outside of a cluster")
	embedded := flag.String("embedded-mysql", "127.0.0.1:0", "run a MySQL server in memory at this `address`, for Servers with embedded: true; empty for none")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(ctrl.SetupSignalHandler(), options, *embedded); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs the operator, and the embedded server, until ctx is done.
func run(ctx context.Context, options ctrl.Options, embedded string) (err error) {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	d := dependencies{connect: connectMySQL, newPassword: newPassword}
	if embedded != "" {
		server, err := mysqlserver.Start(embedded)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		d.embedded = server.Address
	}
	mgr, err := newManager(config, options, d)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the controllers. It is not started.
func newManager(config *rest.Config, options ctrl.Options, d dependencies) (ctrl.Manager, error) {
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
	if err := addControllers(mgr, d, observer); err != nil {
		return nil, fmt.Errorf("adding the controllers: %w", err)
	}
	return mgr, nil
}
