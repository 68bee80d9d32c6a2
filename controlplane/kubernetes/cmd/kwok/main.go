// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command kwok runs Nodes and Pods that live without a machine.
//
// It is the program of sigs.k8s.io/kwok with one addition: it ends when the
// process that started it is gone. It is a binary of its own because it and
// the Kubernetes programs both register a global flag named version.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"

	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes/internal/orphan"
)

func main() {
	orphan.Watch()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}

// run reads the flags that kwok's configuration is made of first, because the
// flags of its command take their defaults from that configuration.
func run() error {
	global := pflag.NewFlagSet("global", pflag.ContinueOnError)
	global.ParseErrorsAllowlist.UnknownFlags = true
	global.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), global)
	ctx, err := config.InitFlags(ctx, global)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	command := cmd.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(global)
	return command.ExecuteContext(ctx)
}
