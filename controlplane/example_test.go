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
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
	"github.com/ctrlkit/ctrlkit/internal/rings"
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
	fmt.Println(namespace.Name, namespace.Status.Phase) // default Active
}

// Find the programs without starting anything, for a script that runs kubectl.
func ExampleFindAssets() {
	ctx := context.Background()
	assets, err := controlplane.FindAssets(ctx, controlplane.AllParts, controlplane.BuildOptions{Progress: os.Stderr})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(filepath.Base(assets.Program("kubectl"))) // kubectl
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
	if err := environment.Stop(); err != nil {
		log.Fatal(err)
	}
}

// The examples that start processes are not run as examples. They are run here.
func TestExamples(t *testing.T) {
	rings.Test(t, "starts control planes")
	for name, example := range map[string]func(){"Start": ExampleStart, "Build": ExampleBuild, "FindAssets": ExampleFindAssets} {
		t.Run(name, func(*testing.T) { example() })
	}
}
