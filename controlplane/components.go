// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Files in the directory of a control plane.
const (
	authorityFile         = "ca.crt"
	servingFile           = "serving.crt"
	servingKeyFile        = "serving.key"
	serviceAccountKeyFile = "service-accounts.key"
	kubeconfigFile        = "kubeconfig"
	stagesFile            = "stages.yaml"
	etcdSocket            = "etcd.sock"
)

// readinessInterval is the time between two looks at something that starts.
const readinessInterval = 50 * time.Millisecond

//go:embed stages.yaml
var stages []byte

// startAPIServer starts etcd and kube-apiserver at the same time, since the latter
// waits for the former, and returns when kube-apiserver is ready.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	if err := c.run(etcdProgram, c.etcdArgs()); err != nil {
		return err
	}
	if err := c.run(apiServerProgram, c.apiServerArgs()); err != nil {
		return err
	}
	return c.await(ctx, "kube-apiserver", c.healthy(c.port, "/readyz"))
}

// startParts starts the optional parts at the same time and returns when they do
// their work.
func (c *ControlPlane) startParts(ctx context.Context) error {
	parts := c.options.Parts
	if parts.Has(PartControllerManager) {
		if err := c.run(controllerManagerProgram, c.controllerManagerArgs()); err != nil {
			return err
		}
	}
	var schedulerHealthy func(context.Context) error
	if parts.Has(PartScheduler) {
		port, err := c.reservePort()
		if err != nil {
			return err
		}
		if err := c.run(schedulerProgram, c.schedulerArgs(port)); err != nil {
			return err
		}
		schedulerHealthy = c.healthy(port, "/readyz")
	}
	if parts.Has(PartNodes) {
		if err := c.startNodes(ctx); err != nil {
			return err
		}
	}
	if parts.Has(PartControllerManager) {
		if err := c.await(ctx, "kube-controller-manager", c.defaultNamespaceUsable); err != nil {
			return err
		}
	}
	if parts.Has(PartScheduler) {
		if err := c.await(ctx, "kube-scheduler", schedulerHealthy); err != nil {
			return err
		}
	}
	if parts.Has(PartNodes) {
		return c.await(ctx, "Nodes", c.nodesUsable)
	}
	return nil
}

// await polls ready until it returns nil, and gives up when ctx ends or a process dies.
func (c *ControlPlane) await(ctx context.Context, what string, ready func(context.Context) error) error {
	err := poll(ctx, readinessInterval, c.done, ready)
	if died := c.Err(); died != nil {
		return died
	}
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}

// healthy returns a check that asks a server on port how it is.
func (c *ControlPlane) healthy(port *reservedPort, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		httpClient, err := rest.HTTPClientFor(c.admin)
		if err != nil {
			return err
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port.number, path), nil)
		if err != nil {
			return err
		}
		response, err := httpClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return nil
		}
		said, err := io.ReadAll(io.LimitReader(response.Body, 10_000))
		return errors.Join(fmt.Errorf("%s answers %s: %s", path, response.Status, said), err)
	}
}

// defaultNamespaceUsable tells whether the controllers have done for the default
// namespace what they do for each.
func (c *ControlPlane) defaultNamespaceUsable(ctx context.Context) error {
	reader, err := c.client()
	if err != nil {
		return err
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "default"}
	if err := reader.Get(ctx, key, &corev1.ServiceAccount{}); err != nil {
		return err
	}
	key.Name = "kube-root-ca.crt"
	return reader.Get(ctx, key, &corev1.ConfigMap{})
}

// etcdArgs make etcd listen on sockets in the directory of the control plane:
// no port is taken, and other users of the machine cannot reach it. What it
// advertises instead is for other members, and there are none.
func (c *ControlPlane) etcdArgs() []string {
	return []string{
		"--data-dir=" + c.file("etcd"),
		"--listen-client-urls=unix://" + c.file(etcdSocket),
		"--advertise-client-urls=http://localhost:2379",
		"--listen-peer-urls=unix://" + c.file("etcd-peer.sock"),
		"--unsafe-no-fsync", // the data need not survive the machine
		"--log-level=warn",
	}
}

func (c *ControlPlane) apiServerArgs() []string {
	args := []string{
		"--etcd-servers=unix://" + c.file(etcdSocket),
		"--client-ca-file=" + c.file(authorityFile),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.file(serviceAccountKeyFile),
		"--service-account-signing-key-file=" + c.file(serviceAccountKeyFile),
		"--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--endpoint-reconciler-type=none", // Pods that would use the kubernetes Service do not run
		"--profiling=false",
	}
	if !c.options.Parts.Has(PartControllerManager) {
		// Nobody creates the ServiceAccounts without which it refuses Pods.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	return append(args, c.servingArgs(c.port)...)
}

// servingArgs are the flags by which the programs of Kubernetes serve.
func (c *ControlPlane) servingArgs(port *reservedPort) []string {
	return []string{
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port.number),
		"--permit-port-sharing=true", // with the socket that reserves the port
		"--tls-cert-file=" + c.file(servingFile),
		"--tls-private-key-file=" + c.file(servingKeyFile),
	}
}

// controllerManagerArgs run all controllers but those that need a cloud, a
// machine or a volume. There is nobody to compete with for leadership.
func (c *ControlPlane) controllerManagerArgs() []string {
	return []string{
		"--kubeconfig=" + c.file(kubeconfigFile),
		"--controllers=*,-node-ipam-controller,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller," +
			"-persistentvolume-attach-detach-controller,-persistentvolume-expander-controller,-horizontal-pod-autoscaler-controller",
		"--leader-elect=false",
		"--service-account-private-key-file=" + c.file(serviceAccountKeyFile),
		"--root-ca-file=" + c.file(authorityFile),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
		"--secure-port=0", // readiness is seen by what it does
	}
}

func (c *ControlPlane) schedulerArgs(port *reservedPort) []string {
	return append([]string{
		"--kubeconfig=" + c.file(kubeconfigFile),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}, c.servingArgs(port)...)
}
