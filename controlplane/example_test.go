// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/ctrlkit/ctrlkit/controlplane"
)

// Start what is always there, etcd and kube-apiserver, and use it.
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

// A test with a control plane of its own, with controllers and Nodes.
func ExampleStartForTest() {
	_ = func(t *testing.T) {
		plane := controlplane.StartForTest(t, controlplane.Options{
			Parts: controlplane.AllParts,
			CRDs:  []string{"config/crd"},
		})
		_ = plane.Config() // for the manager under test
	}
}

// The programs also serve those who know envtest and want no more.
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
	// Output: started
}
