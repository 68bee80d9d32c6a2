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
	ctrl "sigs.k8s.io/controller-runtime"

	v1 "github.com/ctrlkit/ctrlkit/examples/06_stream/api/v1"
	"github.com/ctrlkit/ctrlkit/examples/06_stream/natsserver"
	"github.com/ctrlkit/ctrlkit/operator"
)

func main() { jetStream(settings{dial: dialNATS}).Main() }

// jetStream is the operator, with the settings of flags or of a test. Main starts a server beside
// it, unless it is given the address of one.
func jetStream(s settings) operator.Operator {
	return operator.Operator{
		Name:     "stream.nats.ctrlkit.dev",
		Types:    []func(*runtime.Scheme) error{v1.AddToScheme},
		Controls: []func(ctrl.Manager) error{func(mgr ctrl.Manager) error { return addControllers(mgr, s) }},
		Observe:  []operator.Option{operator.WithPage(), operator.WithObjects(&v1.Stream{}, &v1.Consumer{})},
		Flags: func(flags *flag.FlagSet) {
			flags.StringVar(&s.address, "nats-address", "", "the `URL` of the NATS server of objects that name none; without it, a server for demonstrations is started, whose streams are gone when the operator ends")
			flags.DurationVar(&s.poll, "poll", time.Minute, "observe each stream and consumer after this `time`")
		},
		Around: func(ctx context.Context, run func(context.Context) error) error {
			if s.address != "" {
				return run(ctx)
			}
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
			return run(ctx)
		},
	}
}
