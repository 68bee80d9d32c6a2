// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// startFlags are the flags of `ctrlkit controlplane start`.
type startFlags struct {
	components []string
	nodes      int
	kubeconfig string
	logDir     string
	quiet      bool
}

func newControlPlaneStartCommand() *cobra.Command {
	var flags startFlags
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run a control plane until Ctrl-C",
		Long: `Run a control plane until Ctrl-C, which stops it and removes its data. The
programs are built first if necessary; the address of the API server is written
to standard error as soon as it serves. Any number of control planes can run at
the same time.

etcd and kube-apiserver always run. --components selects the others:
controller-manager, scheduler, nodes (which needs the other two), all, none.

Pods become ready without running. Those of Jobs complete after a second and a
half; annotations of the Pod change that:
  ` + controlplane.RunsForAnnotation + `: 10s
  ` + controlplane.ExitCodeAnnotation + `: "1"`,
		Example: `  ctrlkit controlplane start
  ctrlkit controlplane start --components none
  ctrlkit controlplane start --nodes 3 --kubeconfig ~/.kube/config`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runControlPlane(cmd, flags) },
	}
	cmd.Flags().StringSliceVar(&flags.components, "components", []string{"all"}, "what to run in addition to etcd and kube-apiserver")
	cmd.Flags().IntVar(&flags.nodes, "nodes", 1, "the number of Nodes")
	cmd.Flags().StringVar(&flags.kubeconfig, "kubeconfig", "", "also add the control plane to this kubeconfig file while it runs")
	cmd.Flags().StringVar(&flags.logDir, "log-dir", "", "keep the logs of the programs in this directory, which is created if it does not exist")
	cmd.Flags().BoolVarP(&flags.quiet, "quiet", "q", false, "print nothing but the path of the kubeconfig file")
	return cmd
}

func runControlPlane(cmd *cobra.Command, flags startFlags) (err error) {
	options, err := flags.options(unchanged(cmd.ErrOrStderr()))
	if err != nil {
		return &exitError{code: 2, err: err}
	}
	ctx := cmd.Context()
	begin := time.Now()
	plane, err := controlplane.Start(ctx, options)
	if err != nil {
		if ctx.Err() != nil {
			return nil // interrupted, and everything is stopped
		}
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	kubeconfig := plane.Kubeconfig()
	if flags.kubeconfig != "" {
		kubeconfig = flags.kubeconfig
		restore, err := plane.WriteKubeconfig(kubeconfig)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	if flags.quiet {
		fmt.Fprintln(cmd.OutOrStdout(), kubeconfig)
	} else {
		greet(cmd.OutOrStdout(), plane, kubeconfig, time.Since(begin))
	}
	select {
	case <-ctx.Done():
		return nil
	case <-plane.Done():
		return plane.Err()
	}
}

func (f startFlags) options(progress io.Writer) (controlplane.Options, error) {
	parts, err := controlplane.ParseParts(f.components)
	if err != nil {
		return controlplane.Options{}, err
	}
	if f.nodes < 1 {
		return controlplane.Options{}, fmt.Errorf("--nodes %d: must be at least 1; for no Nodes, omit nodes from --components", f.nodes)
	}
	options := controlplane.Options{Parts: parts, Nodes: f.nodes, LogDir: f.logDir}
	if !f.quiet {
		options.Progress = progress
	}
	return options, nil
}

// greet prints how to use a control plane.
func greet(out io.Writer, plane *controlplane.ControlPlane, kubeconfig string, took time.Duration) {
	absolute, err := filepath.Abs(kubeconfig)
	if err != nil {
		absolute = kubeconfig
	}
	fmt.Fprintf(out, `The control plane is ready after %.1f s at %s
(components in addition to etcd and kube-apiserver: %s)

  export KUBECONFIG=%s
  export PATH=%s:"$PATH"   # for its kubectl, unless you have one
  kubectl get namespaces

Press Ctrl-C to stop it and remove its data.
`, took.Seconds(), plane.Config().Host, plane.Parts(),
		quoteForShell("sh", absolute), quoteForShell("sh", plane.Assets().Dir))
}
