// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ctrlkit/ctrlkit/internal/sim/apiserver"
	"github.com/ctrlkit/ctrlkit/sim/player"
)

// serviceAccounts gives each Namespace the ServiceAccount that Pods have by default.
var serviceAccounts = player.New(func(s *player.Stage, ns *corev1.Namespace) error {
	if ns.DeletionTimestamp != nil {
		return nil
	}
	if _, ok := player.Get[*corev1.ServiceAccount](s, ns.Name, "default"); ok {
		return nil
	}
	return s.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "default"}})
}).Watching(&corev1.ServiceAccount{}, func(_ *player.Stage, account client.Object) []client.ObjectKey {
	return []client.ObjectKey{{Name: account.GetNamespace()}}
})

// createNode creates the Node on which all Pods run.
func (c *Cluster) createNode() error {
	node := &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{
			corev1.LabelHostname: "node-1", corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "InMemory", Message: "Pods are played: no container runs",
				LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
			}},
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "node-1"}},
		},
	}
	body, err := json.Marshal(node)
	if err != nil {
		return fmt.Errorf("encoding the Node: %w", err)
	}
	for _, step := range []struct{ method, path string }{
		{http.MethodPost, "/api/v1/nodes"}, {http.MethodPut, "/api/v1/nodes/node-1/status"},
	} {
		request, err := apiserver.NewRequest(step.method, step.path, "application/json", body)
		if err != nil {
			return err
		}
		request.Actor, request.UserAgent = "server", "kubelet"
		if response := c.server.Serve(request); response.Code >= http.StatusMultipleChoices {
			return fmt.Errorf("creating the Node: %s", response.Body)
		}
	}
	return nil
}
