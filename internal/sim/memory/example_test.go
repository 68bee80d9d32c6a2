// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/memory"
)

func Example() {
	cluster, err := memory.Start(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Stop() //nolint:errcheck // the example ends
	c, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var nodes corev1.NodeList
	if err := c.List(context.Background(), &nodes); err != nil {
		log.Fatal(err)
	}
	fmt.Println(nodes.Items[0].Name)
	// Output:
	// node-1
}
