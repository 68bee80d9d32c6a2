// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command clients is the clients of an API server in one binary: kube-controller-manager,
// kube-scheduler and kubectl; see package program. It is built after the API server.
package main

import (
	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl: credentials of cloud providers
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes/internal/program"
)

func main() {
	program.Run(map[string]program.Program{
		"kube-controller-manager": program.Server(controllermanager.NewControllerManagerCommand),
		"kube-scheduler":          program.Server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kubectl":                 {Main: runKubectl},
	})
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error and exits
	}
	return 0
}
