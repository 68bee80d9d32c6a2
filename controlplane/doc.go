// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds and starts a real Kubernetes control plane on a
// machine that has nothing but Go: etcd and kube-apiserver and, where asked
// for, the controller manager (garbage collector, namespaces, Jobs,
// Deployments, ...), the scheduler, and Nodes on which Pods live and complete
// without a machine.
//
// The programs come from their published Go modules. [Build] compiles them once
// into the user's cache, in a directory that controller-runtime's envtest accepts
// as KUBEBUILDER_ASSETS. [Start] runs them as processes, on ports of their own,
// so that any number of control planes live side by side:
//
//	plane, err := controlplane.Start(ctx, controlplane.Options{Parts: controlplane.AllParts})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//	client, err := client.New(plane.Config(), client.Options{})
//
// In a test, [controlplanetest.Start] does both and stops the control plane with the test. A package whose
// tests can share one control plane declares a controlplanetest.Shared.
//
// Each process ends by itself when the one that started it is gone, however
// that ended, and takes the files of the control plane with it.
//
// The package leaves to others: custom resources beyond those in
// [Options].CRDs and webhooks (envtest.InstallCRDs and
// envtest.WebhookInstallOptions work with [ControlPlane.Config]), and everything
// that needs a machine: no container runs, no packet flows, no volume exists. It
// works on Linux and macOS; envtest does not compile for Windows either.
package controlplane
