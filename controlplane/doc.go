// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

// Package controlplane builds and starts a real Kubernetes control plane on a machine that has
// Go and no other program: etcd, kube-apiserver and, as options, the controller manager (garbage collector,
// namespaces, Jobs, Deployments, ...), the scheduler, and Nodes whose Pods become ready and
// complete without running.
//
// The programs come from their published Go modules. [Build] compiles them once into the user's
// cache, in a directory that controller-runtime's envtest accepts as KUBEBUILDER_ASSETS. [Start]
// runs them as processes on free ports, so that any number of control planes can run at the same
// time:
//
//	plane, err := controlplane.Start(ctx, controlplane.Options{Parts: controlplane.AllParts})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//	client, err := client.New(plane.Config(), client.Options{})
//
// [StartEarly] does not wait for controllers that are still to be compiled.
//
// In a test, use ctrlkittest.StartControlPlane, which stops the control plane with the test. A package
// whose tests can share one control plane declares a ctrlkittest.SharedControlPlane.
//
// When the process that started a control plane ends, even if it is killed, the processes of the
// control plane end and remove its files.
//
// The package does not
//
//   - install webhooks, or custom resources beyond [Options].CRDs: use envtest.InstallCRDs and
//     envtest.WebhookInstallOptions with [ControlPlane.Config],
//   - run containers, forward packets or provide volumes,
//   - work on Windows, for which envtest does not compile either.
package controlplane
