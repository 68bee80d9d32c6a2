// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ctrlkit/ctrlkit/internal/cluster/restmapper"
	"github.com/ctrlkit/ctrlkit/internal/cluster/witness"
)

// An Operator says what the program of an operator consists of. [Operator.Main] is all of its main,
// and [Operator.Manager] makes the same manager in a test. Name and Controls are required, all else
// may be zero.
type Operator struct {
	// Name is the ID of leader election: the name of the Lease, such as databases.example.com.
	Name string

	// Types add the types of the operator to the scheme of the manager. Those of client-go are
	// there.
	Types []func(*runtime.Scheme) error

	// Controls add the controllers, or the handlers, to a manager. The engines of step.Control have
	// its observers and its shard; others find them with [ObserversOf] and [ShardOf].
	Controls []func(mgr ctrl.Manager) error

	// Observe are the options of [Observe]. If it is nil, they are [WithPage] alone.
	Observe []Option

	// Options changes the options of the manager, such as those of its cache, after flags have.
	Options func(options *ctrl.Options)

	// Flags adds flags beside those of Main.
	Flags func(flags *flag.FlagSet)

	// Around is for what the program needs as long as it runs, such as a server that it starts and
	// stops. Main calls it when the flags are parsed and a cluster is found. It calls run, once,
	// which makes the manager and runs it until ctx is done, and returns the error. Manager does
	// not call it.
	Around func(ctx context.Context, run func(context.Context) error) error

	// SecureMetrics says who may read the metrics, the explanations and the page over TLS, such as
	// filters.WithAuthenticationAndAuthorization of controller-runtime: it is
	// metricsserver.Options.FilterProvider then. With it the default of --metrics-secure is true.
	SecureMetrics func(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error)

	// Sharding lets the replicas share the objects: see [NewShardManager]. If it is not nil, Main
	// has the flags --shard-ring and --shard-name, with the values here as defaults.
	Sharding *ShardOptions
}

// Main runs the operator until the process is to end, as all that main does. It
//
//   - adds to flag.CommandLine, and parses, the flags of [BindFlags], those of zap for the log,
//     those of Flags, --leader-elect and --leader-election-namespace;
//   - finds the cluster as ctrl.GetConfig does;
//   - starts what [Operator.Manager] returns, and stops it at SIGTERM or SIGINT;
//   - prints an error as "error: ..." and ends the process with code 1 then.
//
// The Lease of a leader is given back at the end, because the process ends with the manager.
func (o Operator) Main() {
	if code := o.main(flag.CommandLine, os.Args[1:], os.Stderr, ctrl.SetupSignalHandler); code != 0 {
		os.Exit(code)
	}
}

// main is Main. It returns the exit code; the context of signals is done at the end.
func (o Operator) main(flags *flag.FlagSet, args []string, errOut io.Writer, signals func() context.Context) int {
	options := ctrl.Options{LeaderElectionReleaseOnCancel: true} // the process ends with the manager
	o.bind(flags, &options)
	logging := zap.Options{}
	logging.BindFlags(flags)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2 // as flag.CommandLine does, which has printed it, too
	}
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logging)))
	if o.SecureMetrics != nil && options.Metrics.SecureServing {
		options.Metrics.FilterProvider = o.SecureMetrics
	}
	if err := o.run(signals(), options); err != nil {
		fmt.Fprintln(errOut, "error:", err)
		return 1
	}
	return 0
}

// bind adds all flags but those of the log.
func (o *Operator) bind(flags *flag.FlagSet, options *ctrl.Options) {
	options.Metrics.SecureServing = o.SecureMetrics != nil
	BindFlags(flags, options)
	flags.BoolVar(&options.LeaderElection, "leader-elect", false, "reconcile in one instance at a time")
	flags.StringVar(&options.LeaderElectionNamespace, "leader-election-namespace", "", "the `namespace` of the lease; required outside of a cluster")
	if o.Sharding != nil {
		of := *o.Sharding
		o.Sharding = &of
		flags.StringVar(&of.Ring, "shard-ring", of.Ring, "share the objects with the other replicas, as the ControllerRing of this `name` says; without it, this replica has all objects")
		flags.StringVar(&of.Name, "shard-name", of.Name, "the `name` of this replica in the ring; by default that of the host")
	}
	if o.Flags != nil {
		o.Flags(flags)
	}
}

// run runs the operator until ctx is done.
func (o Operator) run(ctx context.Context, options ctrl.Options) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding a cluster: %w", err)
	}
	run := func(ctx context.Context) error {
		mgr, err := o.Manager(config, options)
		if err != nil {
			return err
		}
		return mgr.Start(ctx)
	}
	if o.Around != nil {
		return o.Around(ctx, run)
	}
	return run(ctx)
}

// Manager returns the manager of the operator, which is not started:
//
//   - its scheme is a new one with Types, whatever options have;
//   - [NewManager] makes it, or [NewShardManager] if there is a ring;
//   - /healthz and /readyz, if they are served, answer as soon as it runs;
//   - its cache keeps of managed fields what was applied, with apply.CacheTransform, and its mapper is
//     that of step.NewRESTMapper, unless the options have others;
//   - it is observed, as [Observe] says, and has what Controls add.
//
// Options are those of the process or of a test, such as where to listen. What Options of the
// operator sets has precedence.
func (o Operator) Manager(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	options.Scheme = runtime.NewScheme()
	for _, add := range append([]func(*runtime.Scheme) error{clientgoscheme.AddToScheme}, o.Types...) {
		if err := add(options.Scheme); err != nil {
			return nil, fmt.Errorf("registering types: %w", err)
		}
	}
	options.LeaderElectionID = cmp.Or(options.LeaderElectionID, o.Name)
	if o.Options != nil {
		o.Options(&options)
	}
	if options.Cache.DefaultTransform == nil {
		options.Cache.DefaultTransform = witness.CacheTransform()
	}
	if options.MapperProvider == nil {
		options.MapperProvider = restmapper.New
	}
	var of ShardOptions
	if o.Sharding != nil {
		of = *o.Sharding
	}
	mgr, _, err := NewShardManager(config, options, of)
	if err != nil {
		return nil, fmt.Errorf("creating the manager: %w", err)
	}
	for _, add := range []func(string, healthz.Checker) error{mgr.AddHealthzCheck, mgr.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("adding a health check: %w", err)
		}
	}
	with := o.Observe
	if with == nil {
		with = []Option{WithPage()}
	}
	if err := Observe(mgr, with...); err != nil {
		return nil, fmt.Errorf("making the operator observable: %w", err)
	}
	for _, add := range o.Controls {
		if err := add(mgr); err != nil {
			return nil, fmt.Errorf("adding the controllers: %w", err)
		}
	}
	return mgr, nil
}
