// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package controlplane_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Start etcd and kube-apiserver, the parts that every control plane has, and use them.
func ExampleStart() {
	ctx := context.Background()
	plane, err := controlplane.Start(ctx, controlplane.Options{Progress: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	defer plane.Stop()

	c, err := client.New(plane.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var namespace corev1.Namespace
	if err := c.Get(ctx, client.ObjectKey{Name: "default"}, &namespace); err != nil {
		log.Fatal(err)
	}
	fmt.Println(namespace.Name, namespace.Status.Phase)
	// Output: default Active
}

// Find the programs without starting anything, for a script that runs kubectl.
func ExampleFindAssets() {
	ctx := context.Background()
	assets, err := controlplane.FindAssets(ctx, controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(filepath.Base(assets.Program("kubectl")))
	// Output: kubectl
}

// Build the programs for a test suite that uses envtest.
func ExampleBuild() {
	assets, err := controlplane.Build(context.Background(), controlplane.BuildOptions{Progress: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	environment := &envtest.Environment{BinaryAssetsDirectory: assets.Dir}
	if _, err := environment.Start(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("started")
	if err := environment.Stop(); err != nil {
		log.Fatal(err)
	}
}
