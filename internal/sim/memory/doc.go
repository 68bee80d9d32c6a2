// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package memory is a Kubernetes cluster within a process, for operators and people: the API server of
// package apiserver, served over HTTPS on the loopback interface, with the players of package player in
// place of the controllers, the scheduler and the kubelets, in real time. It starts in milliseconds.
//
//	cluster, err := memory.Start(memory.Options{})
//	if err != nil {
//		return err
//	}
//	defer cluster.Stop()
//	client, err := client.New(cluster.Config(), client.Options{})
//
// An operator in another process, and kubectl, use the file that [Cluster.Kubeconfig] names.
//
// What the cluster does:
//
//   - Jobs complete, and Deployments, ReplicaSets, StatefulSets and DaemonSets become available, a
//     second or two after their creation. Claims are bound, Services and Ingresses get addresses.
//   - The garbage collector works, and so do the deletion of Namespaces and of
//     CustomResourceDefinitions, and the protection of claims and volumes in use.
//   - kubectl prints the columns of a real server, explains kinds, and validates what it applies.
//
// What it does not do:
//
//   - It runs no containers: there are no logs, and nothing to execute in or to forward ports to.
//   - It calls no webhooks, neither for admission ([Options].Admission can) nor for conversion.
//   - It enforces no RBAC: its only user may do everything, and it issues no tokens for
//     ServiceAccounts.
//   - It has no controllers but those above: a CronJob of batch/v1 creates no Jobs, and a
//     HorizontalPodAutoscaler does not scale.
//   - It records no Events of its own, and keeps nothing when it stops.
//
// Package controlplane starts the real control plane where these matter.
package memory
