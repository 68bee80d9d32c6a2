// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command 06_stream is an operator for streams and consumers of NATS JetStream.
//
// It needs a cluster with the definitions in config/crd, which ctrlkit run starts. It starts a NATS
// server itself, unless it is given the address of one:
//
//	ctrlkit run ./examples/06_stream
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
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/06_stream/natsserver"
	"github.com/ctrlkit/ctrlkit/leader"
	"github.com/ctrlkit/ctrlkit/observe"
)

func main() {
	options := ctrl.Options{LeaderElectionID: "stream.nats.ctrlkit.dev", LeaderElectionReleaseOnCancel: true} // the process ends with the manager
	s := settings{dial: dialNATS}
	flag.StringVar(&s.address, "nats-address", "", "the `URL` of the NATS server of objects that name none; without it, a server for demonstrations is started, whose streams are gone when the operator ends")
	flag.DurationVar(&s.poll, "poll", time.Minute, "observe each stream and consumer after this `time`")
	observe.BindFlags(flag.CommandLine, &options)
	flag.BoolVar(&options.LeaderElection, "leader-elect", false, "reconcile in one instance at a time")
	flag.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "the `namespace` of the lease; required outside of a cluster")
	logging := zap.Options{}
	logging.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))

	if err := run(ctrl.SetupSignalHandler(), options, s); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// run runs the operator until ctx is done.
func run(ctx context.Context, options ctrl.Options, s settings) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	if s.address == "" {
		dir, err := os.MkdirTemp("", "06_stream-")
		if err != nil {
			return fmt.Errorf("creating a directory for the NATS server: %w", err)
		}
		defer os.RemoveAll(dir) //nolint:errcheck // the system removes it later
		server, stop, err := natsserver.Start(dir)
		if err != nil {
			return err
		}
		defer stop()
		s.address = server.ClientURL()
		ctrl.Log.Info("A NATS server was started", "address", s.address)
	}
	mgr, err := newManager(config, options, s)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns a manager with the controllers. It is not started.
func newManager(config *rest.Config, options ctrl.Options, s settings) (ctrl.Manager, error) {
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
	if err == nil {
		err = observe.Objects(mgr, &v1.Stream{}, &v1.Consumer{})
	}
	if err != nil {
		return nil, fmt.Errorf("making the operator observable: %w", err)
	}
	if err := addControllers(mgr, s, observer); err != nil {
		return nil, fmt.Errorf("adding the controllers: %w", err)
	}
	return mgr, nil
}
