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

	"github.com/ctrlkit/ctrlkit/internal/gobuild"
)

// readinessInterval is the interval of readiness checks during a start.
const readinessInterval = 50 * time.Millisecond

//go:embed stages.yaml
var stages []byte

// startAPIServer starts etcd and kube-apiserver at the same time, since the latter
// waits for the former, and returns when kube-apiserver is ready.
func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	defer gobuild.Show(c.options.Progress, gobuild.WhenSlow, "starting etcd and kube-apiserver", nil)()
	if err := c.run(etcdProgram, etcdFlags(c.dir)); err != nil {
		return err
	}
	if err := c.run(apiServerProgram, apiServerFlags(c.dir, c.port, c.options.Parts)); err != nil {
		return err
	}
	return c.await(ctx, "kube-apiserver", c.healthy(c.port, "/readyz"))
}

// startParts starts optional parts at the same time and returns when they are ready.
func (c *ControlPlane) startParts(ctx context.Context, parts Parts) error {
	if parts == 0 {
		return nil
	}
	defer gobuild.Show(c.options.Progress, gobuild.WhenSlow, "starting the parts "+parts.String(), nil)()
	if parts.Has(PartControllerManager) {
		if err := c.run(controllerManagerProgram, controllerManagerFlags(c.dir)); err != nil {
			return err
		}
	}
	var schedulerHealthy func(context.Context) error
	if parts.Has(PartScheduler) {
		port, err := c.reservePort()
		if err != nil {
			return err
		}
		if err := c.run(schedulerProgram, schedulerFlags(c.dir, port)); err != nil {
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

// await polls ready until it returns nil, ctx ends, or a process ends.
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

// healthy returns a check of the health endpoint of the server on port.
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

// defaultNamespaceUsable returns an error unless the controllers have created what each namespace
// has.
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
