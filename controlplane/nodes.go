// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// RunsForAnnotation on a Pod whose restart policy is not Always sets how long it runs on a Node
	// of [PartNodes], as a duration such as "10s". The default for Pods of Jobs is a second and a
	// half; other Pods do not end.
	RunsForAnnotation = "controlplane.ctrlkit.dev/runs-for"

	// ExitCodeAnnotation on such a Pod sets the exit code of its containers. The Pod fails unless
	// it is
	// 0.
	ExitCodeAnnotation = "controlplane.ctrlkit.dev/exit-code"
)

// startNodes creates the Nodes and starts kwok, which simulates their kubelets.
func (c *ControlPlane) startNodes(ctx context.Context) error {
	writer, err := c.client()
	if err != nil {
		return fmt.Errorf("creating Nodes: %w", err)
	}
	for i := range max(1, c.options.Nodes) {
		node := newNode(fmt.Sprintf("node-%d", i+1))
		if err := writer.Create(ctx, node); err != nil {
			return fmt.Errorf("creating Node %s: %w", node.Name, err)
		}
	}
	return c.run(kwokProgram, []string{
		"--kubeconfig=" + c.dir.file(kubeconfigFile),
		"--config=" + c.dir.file(stagesFile),
		"--manage-all-nodes=true",
		"--node-lease-duration-seconds=40",
		"--cidr=10.128.0.0/12",
		"--node-ip=10.127.0.1",
		"--v=WARN",
	})
}

func newNode(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name,
		Labels: map[string]string{
			corev1.LabelHostname:   name,
			corev1.LabelOSStable:   "linux",
			corev1.LabelArchStable: "amd64",
		},
	}}
}

// nodesUsable returns an error unless all Nodes are ready and have no taints.
func (c *ControlPlane) nodesUsable(ctx context.Context) error {
	reader, err := c.client()
	if err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := reader.List(ctx, &nodes); err != nil {
		return err
	}
	for _, node := range nodes.Items {
		if !isReady(&node) {
			return fmt.Errorf("node %s is not ready", node.Name)
		}
		if len(node.Spec.Taints) > 0 {
			return fmt.Errorf("node %s is tainted %s", node.Name, node.Spec.Taints[0].Key)
		}
	}
	return nil
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
