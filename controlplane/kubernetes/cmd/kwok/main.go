// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command kwok simulates Nodes and Pods.
//
// It is the program of sigs.k8s.io/kwok with one addition: it ends when its parent process has
// ended. It is a binary of its own because it and the Kubernetes programs both register a global
// flag named version.
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

// run first reads the flags of kwok's configuration, because that has the defaults of the command's
// flags.
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
