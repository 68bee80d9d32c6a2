// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Command servers is the servers of a control plane in one binary: etcd and kube-apiserver; see
// package program. It is built before the programs that are clients of these, so that an API server
// serves while those are still compiled.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"

	"github.com/ctrlkit/ctrlkit/controlplane/kubernetes/internal/program"
)

func main() {
	program.Run(map[string]program.Program{
		"etcd":           {Main: runEtcd, EndsWithParent: true},
		"kube-apiserver": program.Server(apiserver.NewAPIServerCommand),
	})
}

// runEtcd returns only if etcd ends without an error; otherwise etcd exits the process.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}
