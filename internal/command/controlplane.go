// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"
)

// newControlPlaneCommand returns the command that builds and starts a control plane of package
// controlplane.
func newControlPlaneCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "controlplane",
		Short: "Build and start a real Kubernetes control plane",
		Long: `Build and start a real Kubernetes control plane: etcd, kube-apiserver,
kube-controller-manager, kube-scheduler, and Nodes whose Pods become ready
without running. It needs Go and no other program: the programs are
compiled once, from their published modules, into your cache.`,
		Example: `  # compile the programs (minutes the first time)
  ctrlkit controlplane build

  # run a control plane until Ctrl-C
  ctrlkit controlplane start

  # use the programs in tests with controller-runtime's envtest
  source <(ctrlkit controlplane env)
  go test ./...`,
		Args: arguments(0, 0),
	}
	cmd.AddCommand(newControlPlaneBuildCommand(), newControlPlaneEnvCommand(), newControlPlaneStartCommand())
	return cmd
}
