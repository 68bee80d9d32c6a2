// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command operator runs one of the operators of package operators, and answers the questions of the
// program that measures. See package process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ctrlkit/ctrlkit/bench/operators"
	"github.com/ctrlkit/ctrlkit/bench/process"
	"github.com/ctrlkit/ctrlkit/bench/requests"
	"github.com/ctrlkit/ctrlkit/operator"
)

func main() {
	settings, err := process.ParseFlags()
	if err == nil {
		err = run(settings)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(settings process.Settings) error {
	one, err := operators.Named(settings.Operator)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard()) // a log costs each operator something else
	transport := requests.NewTransport()
	config, err := settings.Config(transport)
	if err != nil {
		return err
	}
	options, err := one.Options(settings)
	if err != nil {
		return err
	}
	mgr, shard, err := operator.NewShardManager(config, options, operator.ShardOptions{Ring: settings.Ring, Name: settings.Shard, Namespace: settings.Namespace})
	if err != nil {
		return err
	}
	add := one.Add
	if shard != nil {
		add = operators.AddSteps
	}
	if settings.Handlers > 0 {
		add = one.AddHandlers
	}
	if add == nil {
		return fmt.Errorf("the operator %q has no handlers of ConfigMaps", settings.Operator)
	}
	if err := add(mgr, settings); err != nil {
		return err
	}
	return serve(mgr, transport)
}

// serve runs the manager until standard input ends.
func serve(mgr ctrl.Manager, transport *requests.Transport) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go func() {
		if err := mgr.Start(ctx); err != nil {
			cancel(err)
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}()
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		return errors.New("the caches are not filled")
	}
	total, err := reconcileTotal()
	if err != nil {
		return err
	}
	return process.Serve(io.Reader(os.Stdin), os.Stdout, transport, func() (all, errors int) { return reconciles(total) })
}

// reconcileTotal returns the metric of controller-runtime that counts reconciles, which it does not
// export: to register it once more returns the first. To gather all metrics for each answer took
// some milliseconds, more than what is measured.
func reconcileTotal() (*prometheus.CounterVec, error) {
	again := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "controller_runtime_reconcile_total", Help: "Total number of reconciliations per controller",
	}, []string{"controller", "result"})
	err := metrics.Registry.Register(again)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if total, ok := registered.ExistingCollector.(*prometheus.CounterVec); ok {
			return total, nil
		}
	}
	return nil, fmt.Errorf("the metric of reconciles of controller-runtime has changed: %w", err)
}

// reconciles returns how many reconciles have ended, and how many of them in an error.
func reconciles(total *prometheus.CounterVec) (all, errors int) {
	collected := make(chan prometheus.Metric)
	go func() {
		total.Collect(collected)
		close(collected)
	}()
	for metric := range collected {
		var m dto.Metric
		if err := metric.Write(&m); err != nil {
			continue // it never fails for a counter
		}
		n := int(m.GetCounter().GetValue())
		all += n
		for _, label := range m.GetLabel() {
			if label.GetName() == "result" && label.GetValue() == "error" {
				errors += n
			}
		}
	}
	return all, errors
}
