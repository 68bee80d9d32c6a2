// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs, on machines that have no zone database

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl: credentials of cloud providers
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the clients in each program
	_ "k8s.io/component-base/metrics/prometheus/version"  // the metric with the version
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// A program is one that this binary can act as.
type program struct {
	// main runs the program with os.Args and returns its exit code.
	main func() int

	// endsWithParent is set for servers. A client such as kubectl ends by itself, and must finish
	// its work even if its terminal is closed.
	endsWithParent bool
}

var programs = map[string]program{
	"etcd":                    {main: runEtcd, endsWithParent: true},
	"kube-apiserver":          {main: server(apiserver.NewAPIServerCommand), endsWithParent: true},
	"kube-controller-manager": {main: server(controllermanager.NewControllerManagerCommand), endsWithParent: true},
	"kube-scheduler":          {main: server(func() *cobra.Command { return scheduler.NewSchedulerCommand() }), endsWithParent: true},
	"kubectl":                 {main: runKubectl},
}

func server(newCommand func() *cobra.Command) func() int {
	return func() int { return cli.Run(newCommand()) }
}

// runEtcd returns only if etcd ends without an error; otherwise etcd exits the process.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints the error and exits
	}
	return 0
}
