// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import "fmt"

// etcdFlags make etcd listen on sockets in the directory of the control plane: it needs no port,
// and other users of the machine cannot reach it. The advertised address is for other members;
// there are none.
func etcdFlags(dir directory) []string {
	return []string{
		"--data-dir=" + dir.file("etcd"),
		"--listen-client-urls=unix://" + dir.file(etcdSocket),
		"--advertise-client-urls=http://localhost:2379",
		"--listen-peer-urls=unix://" + dir.file("etcd-peer.sock"),
		"--unsafe-no-fsync", // the data need not survive a crash of the machine
		"--log-level=warn",
	}
}

func apiServerFlags(dir directory, port *reservedPort, parts Parts) []string {
	args := []string{
		"--etcd-servers=unix://" + dir.file(etcdSocket),
		"--client-ca-file=" + dir.file(authorityFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + dir.file(serviceAccountKeyFile),
		"--service-account-signing-key-file=" + dir.file(serviceAccountKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none", // Pods that would use the kubernetes Service do not run
		"--profiling=false",
	}
	if !parts.Has(PartControllerManager) {
		// No controller creates the ServiceAccounts without which this plugin rejects Pods.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, servingFlags(dir, port)...)
}

// servingFlags are the flags by which the programs of Kubernetes serve.
func servingFlags(dir directory, port *reservedPort) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port.number),
		"--permit-port-sharing=true", // with the socket that reserves the port
		"--tls-cert-file=" + dir.file(servingFile),
		"--tls-private-key-file=" + dir.file(servingKeyFile),
	}
}

// controllerManagerFlags run all controllers except those that need a machine or a volume.
// There is one instance, so that leader election is off.
func controllerManagerFlags(dir directory) []string {
	return []string{
		"--kubeconfig=" + dir.file(kubeconfigFile),
		"--controllers=*,-node-ipam-controller," +
			"-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,-horizontal-pod-autoscaler-controller",
		"--leader-elect=false",
		"--service-account-private-key-file=" + dir.file(serviceAccountKeyFile),
		"--root-ca-file=" + dir.file(authorityFile),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
		"--secure-port=0", // defaultNamespaceUsable shows that it works
	}
}

func schedulerFlags(dir directory, port *reservedPort) []string {
	return append([]string{
		"--kubeconfig=" + dir.file(kubeconfigFile),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}, servingFlags(dir, port)...)
}
